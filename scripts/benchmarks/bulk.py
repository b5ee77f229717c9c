"""Measure a million orders through bronze, silver and gold: Headrace, the tuned baseline and the stock baseline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from statistics import median

from figures import Figure, Section
from process_cost import Cost, print_progress
from sandbox import Command, Sandbox

MEMORY_MARGIN_MB = 500  # allowed beyond the engine's memory


def measure(sandbox: Sandbox) -> Section:
    """Measure Headrace and the tuned baseline twice each, before and after the stock baseline."""
    rows = sandbox.scaled(1_000_000, minimum=1_000)
    sandbox.warm_up()
    data = sandbox.sample("bulk", rows)
    contenders: dict[str, Callable[[], Command]] = {
        "headrace": lambda: sandbox.headrace(sandbox.bundle("headrace", data), "orders"),
        "tuned": lambda: sandbox.baseline(data),
        "stock": lambda: sandbox.baseline(data, settings="stock"),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    table_rows: dict[str, dict[str, int]] = {}
    for name in ("headrace", "tuned", "stock", "tuned", "headrace"):
        print_progress(f"bulk: {name}, {rows:,} orders …")
        command = contenders[name]()
        costs[name].append(sandbox.run(command))
        table_rows[name] = {table: command.rows(table) for table in ("bronze_orders", "silver_orders", "gold_revenue")}
        shutil.rmtree(command.directory)

    rates = {name: rows / median([cost.wall_s for cost in runs]) for name, runs in costs.items()}
    rates_without_start = {
        name: rows / median([cost.wall_s - cost.session_ready_s for cost in runs]) for name, runs in costs.items()
    }
    memory_limit_mb = _megabytes(sandbox.engine_memory) + MEMORY_MARGIN_MB
    peak_mb = {name: max(cost.memory_mb for cost in runs) for name, runs in costs.items()}
    return Section(
        f"bulk: {rows:,} JSON orders through bronze, silver and gold into Delta",
        [
            Figure("headrace / tuned baseline, rows/s", rates["headrace"] / rates["tuned"], "at least", 0.95),
            Figure("headrace / stock baseline, rows/s", rates["headrace"] / rates["stock"], "at least", 3),
            *(
                Figure(
                    f"headrace / {name} baseline, without session start",
                    rates_without_start["headrace"] / rates_without_start[name],
                )
                for name in ("tuned", "stock")
            ),
            Figure("headrace, peak resident MB", peak_mb["headrace"], "at most", memory_limit_mb),
            Figure("tuned baseline, peak resident MB", peak_mb["tuned"]),
            *(
                Figure(f"rows of {table}, headrace / tuned baseline", table_rows["headrace"][table] / max(1, count))
                for table, count in table_rows["tuned"].items()
            ),
        ],
        [
            f"{name:<9} {rates[name]:>8,.0f} rows/s, {rates_without_start[name]:>8,.0f} without start, "
            f"{median([cost.wall_s for cost in runs]):.1f} s, {median([cost.cpu_s for cost in runs]):.1f} CPU s, "
            f"other processes {median([cost.other_cores for cost in runs]):.2f} cores"
            for name, runs in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in runs] for name, runs in costs.items()}, "rows": table_rows},
    )


def _megabytes(memory: str) -> int:
    """Return a Spark memory size, such as 2g or 512m, in megabytes."""
    return int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
