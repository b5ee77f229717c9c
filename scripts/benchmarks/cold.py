"""A cold run of 100,000 orders, from the shell to the shell: Headrace against the tuned pipeline by hand."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from figures import Figure, Section, middle
from ground import Ground
from measure import Cost, say

REPETITIONS = 3


def measure(ground: Ground) -> Section:
    """In alternating order; the class archive is there, as it is after a user's first run."""
    rows = ground.share(100_000, least=1_000)
    ground.warm_up()
    data = ground.sample("cold", rows)
    costs: dict[str, list[Cost]] = {"headrace": [], "tuned": []}
    for repetition in range(REPETITIONS):
        for name in ("headrace", "tuned") if repetition % 2 == 0 else ("tuned", "headrace"):
            say(f"cold: {name}, {rows:,} orders, {repetition + 1} of {REPETITIONS} …")
            if name == "headrace":
                attempt = ground.headrace(ground.bundle("headrace", data), "orders")
            else:
                attempt = ground.by_hand(data)
            costs[name].append(ground.cost(attempt))
            shutil.rmtree(attempt.directory)

    wall = {name: middle([cost.wall for cost in own]) for name, own in costs.items()}
    cpu = {name: middle([cost.cpu for cost in own]) for name, own in costs.items()}
    return Section(
        f"cold: {rows:,} JSON orders, from the shell to the shell",
        [
            Figure("headrace / tuned by hand, wall time", wall["headrace"] / wall["tuned"], "at most", 0.8),
            Figure("headrace / tuned by hand, CPU seconds", cpu["headrace"] / cpu["tuned"], "at most", 0.6),
        ],
        [
            f"{name:<9} {wall[name]:.1f} s, {cpu[name]:.1f} CPU s, session up after "
            f"{middle([cost.started for cost in own]):.1f} s, others {middle([cost.others for cost in own]):.2f} cores"
            for name, own in costs.items()
        ],
        {"costs": {name: [asdict(cost) for cost in own] for name, own in costs.items()}},
    )
