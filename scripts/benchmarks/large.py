"""Measure ten million orders through bronze, silver and gold: Headrace and the tuned baseline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from statistics import median

from figures import Figure, Section
from process_cost import Cost, print_progress
from sandbox import Command, Sandbox

RUNS = ("headrace", "baseline", "baseline", "headrace")


def measure(sandbox: Sandbox) -> Section:
    """Measure Headrace and the tuned baseline twice each."""
    rows = sandbox.scaled(10_000_000, minimum=10_000)
    sandbox.warm_up()
    data = sandbox.sample("large", rows, files=100)
    contenders: dict[str, Callable[[], Command]] = {
        "headrace": lambda: sandbox.headrace(sandbox.bundle("headrace", data), "orders"),
        "baseline": lambda: sandbox.baseline(data),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    gold_rows: dict[str, int] = {}
    for name in RUNS:
        print_progress(f"large: {name}, {rows:,} orders …")
        command = contenders[name]()
        costs[name].append(sandbox.run(command))
        gold_rows[name] = command.rows("gold_revenue")
        shutil.rmtree(command.directory)

    wall_s = {name: median([cost.wall_s for cost in runs]) for name, runs in costs.items()}
    cpu_s = {name: median([cost.cpu_s for cost in runs]) for name, runs in costs.items()}
    return Section(
        f"large: {rows:,} JSON orders through bronze, silver and gold into Delta",
        [
            Figure("headrace / baseline, wall time", wall_s["headrace"] / wall_s["baseline"], "at most", 1.1),
            Figure("headrace / baseline, CPU seconds", cpu_s["headrace"] / cpu_s["baseline"]),
            Figure("rows of gold_revenue, headrace / baseline", gold_rows["headrace"] / max(1, gold_rows["baseline"])),
        ],
        [
            f"{name:<9} {wall_s[name]:.1f} s, {cpu_s[name]:.1f} CPU s, {rows / wall_s[name]:,.0f} rows/s, "
            f"other processes {median([cost.other_cores for cost in runs]):.2f} cores"
            for name, runs in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in runs] for name, runs in costs.items()}, "rows": gold_rows},
    )
