"""Measure ten million orders through bronze, silver and gold: Headrace and the tuned baseline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from statistics import median

from figures import Figure, Section
from process_cost import Cost, print_progress
from sandbox import Command, Sandbox

ORDER = ("headrace", "baseline", "baseline", "headrace")


def measure(sandbox: Sandbox) -> Section:
    """Measure both twice, in alternating order. The baseline has the JVM options of a large run."""
    rows = sandbox.scaled(10_000_000, minimum=10_000)
    sandbox.warm_up()
    data = sandbox.sample("large", rows, files=100)
    contenders: dict[str, Callable[[], Command]] = {
        "headrace": lambda: sandbox.headrace(sandbox.bundle("headrace", data), "orders"),
        "baseline": lambda: sandbox.baseline(data),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    gold_rows: dict[str, int] = {}
    for name in ORDER:
        print_progress(f"large: {name}, {rows:,} orders …")
        command = contenders[name]()
        costs[name].append(sandbox.run(command))
        gold_rows[name] = command.rows("gold_revenue")
        shutil.rmtree(command.directory)

    wall = {name: median([cost.wall for cost in runs]) for name, runs in costs.items()}
    cpu = {name: median([cost.cpu for cost in runs]) for name, runs in costs.items()}
    return Section(
        f"large: {rows:,} JSON orders through bronze, silver and gold into Delta",
        [
            Figure("headrace / baseline, wall time", wall["headrace"] / wall["baseline"], "at most", 1.1),
            Figure("headrace / baseline, CPU seconds", cpu["headrace"] / cpu["baseline"]),
            Figure("rows of gold_revenue, headrace / baseline", gold_rows["headrace"] / max(1, gold_rows["baseline"])),
        ],
        [
            f"{name:<9} {wall[name]:.1f} s, {cpu[name]:.1f} CPU s, {rows / wall[name]:,.0f} rows/s, "
            f"others {median([cost.others for cost in runs]):.2f} cores"
            for name, runs in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in runs] for name, runs in costs.items()}, "rows": gold_rows},
    )
