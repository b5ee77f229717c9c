"""A million orders through bronze, silver and gold: Headrace against the same by hand, tuned and stock."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict

from figures import Figure, Section, middle
from ground import Attempt, Ground
from measure import Cost, say

SPARE = 500  # MB beyond the engine's memory


def measure(ground: Ground) -> Section:
    """Headrace and tuned twice, around stock in the middle."""
    rows = ground.share(1_000_000, least=1_000)
    ground.warm_up()
    data = ground.sample("bulk", rows)
    contenders: dict[str, Callable[[], Attempt]] = {
        "headrace": lambda: ground.headrace(ground.bundle("headrace", data), "orders"),
        "tuned": lambda: ground.by_hand(data),
        "stock": lambda: ground.by_hand(data, settings="stock"),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    made: dict[str, dict[str, int]] = {}
    for name in ("headrace", "tuned", "stock", "tuned", "headrace"):
        say(f"bulk: {name}, {rows:,} orders …")
        attempt = contenders[name]()
        costs[name].append(ground.cost(attempt))
        made[name] = {table: attempt.rows(table) for table in ("bronze_orders", "silver_orders", "gold_revenue")}
        shutil.rmtree(attempt.directory)

    whole = {name: rows / middle([cost.wall for cost in own]) for name, own in costs.items()}
    without_start = {name: rows / middle([cost.wall - cost.started for cost in own]) for name, own in costs.items()}
    allowed = _megabytes(ground.engine_memory) + SPARE
    return Section(
        f"bulk: {rows:,} JSON orders through bronze, silver and gold into Delta",
        [
            Figure("headrace / tuned by hand, rows/s", whole["headrace"] / whole["tuned"], "at least", 0.95),
            Figure("headrace / stock by hand, rows/s", whole["headrace"] / whole["stock"], "at least", 3),
            Figure(
                "headrace / tuned by hand, without session start", without_start["headrace"] / without_start["tuned"]
            ),
            Figure(
                "headrace / stock by hand, without session start", without_start["headrace"] / without_start["stock"]
            ),
            Figure("headrace, peak resident MB", max(cost.memory for cost in costs["headrace"]), "at most", allowed),
            Figure("tuned by hand, peak resident MB", max(cost.memory for cost in costs["tuned"])),
            *(
                Figure(f"rows of {table}, headrace / tuned by hand", made["headrace"][table] / max(1, count))
                for table, count in made["tuned"].items()
            ),
        ],
        [
            f"{name:<9} {whole[name]:>8,.0f} rows/s, {without_start[name]:>8,.0f} without start, "
            f"{middle([cost.wall for cost in own]):.1f} s, {middle([cost.cpu for cost in own]):.1f} CPU s, "
            f"others {middle([cost.others for cost in own]):.2f} cores"
            for name, own in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in own] for name, own in costs.items()}, "rows": made},
    )


def _megabytes(memory: str) -> int:
    return int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
