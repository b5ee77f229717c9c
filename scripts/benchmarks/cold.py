"""Measure runs of 100,000 orders from the start of the command to its exit: Headrace and the tuned baseline."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from statistics import median

from figures import Figure, Section
from process_cost import Cost, print_progress
from sandbox import Sandbox

REPETITIONS = 3


def measure(sandbox: Sandbox) -> Section:
    """Measure Headrace and the baseline in alternating order.

    Headrace's class archive exists already, as after a user's first run.
    """
    rows = sandbox.scaled(100_000, minimum=1_000)
    sandbox.warm_up()
    data = sandbox.sample("cold", rows)
    costs: dict[str, list[Cost]] = {"headrace": [], "tuned": []}
    for repetition in range(REPETITIONS):
        for name in ("headrace", "tuned") if repetition % 2 == 0 else ("tuned", "headrace"):
            print_progress(f"cold: {name}, {rows:,} orders, {repetition + 1} of {REPETITIONS} …")
            if name == "headrace":
                command = sandbox.headrace(sandbox.bundle("headrace", data), "orders")
            else:
                command = sandbox.baseline(data)
            costs[name].append(sandbox.run(command))
            shutil.rmtree(command.directory)

    wall_s = {name: median([cost.wall_s for cost in runs]) for name, runs in costs.items()}
    cpu_s = {name: median([cost.cpu_s for cost in runs]) for name, runs in costs.items()}
    return Section(
        f"cold: {rows:,} JSON orders, from command start to exit",
        [
            Figure("headrace / tuned baseline, wall time", wall_s["headrace"] / wall_s["tuned"], "at most", 0.8),
            Figure("headrace / tuned baseline, CPU seconds", cpu_s["headrace"] / cpu_s["tuned"], "at most", 0.6),
        ],
        [
            f"{name:<9} {wall_s[name]:.1f} s, {cpu_s[name]:.1f} CPU s, session ready after "
            f"{median([cost.session_ready_s for cost in runs]):.1f} s, "
            f"other processes {median([cost.other_cores for cost in runs]):.2f} cores"
            for name, runs in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in runs] for name, runs in costs.items()}},
    )
