"""Follows ending steps in one coordinated loop: each round runs each step once over what is new.

Against queries that run freely side by side, a row is in silver and in gold in about half the time (2 cores): no two
steps fight for the cores, and each batch takes all that has come meanwhile. Each start loads the step's state, though:
a step whose state has grown large leaves the loop and goes on by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.crew import Crew
from headrace.steps import Prepared

IDLE = 0.5  # seconds to wait after a round in which nothing moved
LARGE_STATE = 100_000  # rows


def follow(crew: Crew, ending: Sequence[Prepared]) -> None:
    """Goes round until told to stop."""
    together = list(ending)
    moved = {table for ready in together for table in ready.step.tables_written}  # the first round finds out
    while not crew.stop.is_set():
        ours = {table for ready in together for table in ready.step.tables_written}
        before, moved = moved, set()
        for ready in list(together):
            if has_news(ready, ours, before | moved) and crew.run_to_end(ready):
                moved |= set(ready.step.tables_written)
            if crew.recorder.state_rows(ready.step.name) > LARGE_STATE:
                together.remove(ready)
                crew.go(ready, "default")
        crew.look_after()
        if not moved:
            crew.stop.wait(IDLE)


def has_news(ready: Prepared, ours: set[str], moved: set[str]) -> bool:
    """A step whose streams are all written in this loop has nothing to do until one of them changed."""
    streams = [read for read in ready.step.reads.values() if not read.static]
    return any(read.table not in ours or read.table in moved for read in streams)
