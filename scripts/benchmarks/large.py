"""Ten million orders through bronze, silver and gold: Headrace against the same queries written directly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict

from figures import Figure, Section, middle
from ground import Attempt, Ground
from measure import Cost, say

ORDER = ("headrace", "direct", "direct", "headrace")


def measure(ground: Ground) -> Section:
    """Measure both twice, in alternating order; the direct queries have the JVM options of a large run."""
    rows = ground.share(10_000_000, least=10_000)
    ground.warm_up()
    data = ground.sample("large", rows, files=100)
    contenders: dict[str, Callable[[], Attempt]] = {
        "headrace": lambda: ground.headrace(ground.bundle("headrace", data), "orders"),
        "direct": lambda: ground.by_hand(data),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    made: dict[str, int] = {}
    for name in ORDER:
        say(f"large: {name}, {rows:,} orders …")
        attempt = contenders[name]()
        costs[name].append(ground.cost(attempt))
        made[name] = attempt.rows("gold_revenue")
        shutil.rmtree(attempt.directory)

    wall = {name: middle([cost.wall for cost in own]) for name, own in costs.items()}
    cpu = {name: middle([cost.cpu for cost in own]) for name, own in costs.items()}
    return Section(
        f"large: {rows:,} JSON orders through bronze, silver and gold into Delta",
        [
            Figure("headrace / written directly, wall time", wall["headrace"] / wall["direct"], "at most", 1.1),
            Figure("headrace / written directly, CPU seconds", cpu["headrace"] / cpu["direct"]),
            Figure("rows of gold_revenue, headrace / written directly", made["headrace"] / max(1, made["direct"])),
        ],
        [
            f"{name:<9} {wall[name]:.1f} s, {cpu[name]:.1f} CPU s, {rows / wall[name]:,.0f} rows/s, "
            f"others {middle([cost.others for cost in own]):.2f} cores"
            for name, own in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in own] for name, own in costs.items()}, "rows": made},
    )
