"""Follows ending steps in one coordinated loop: each round runs each step once over what is new.

Against queries that run freely side by side, a row is in silver and in gold in about half the time (2 cores): no two
steps fight for the cores, and each batch takes all that has come meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.crew import Crew
from headrace.steps import Prepared

IDLE = 0.5  # seconds to wait after a round in which nothing moved


def follow(crew: Crew, ending: Sequence[Prepared]) -> None:
    """Goes round until told to stop."""
    ours = {table for ready in ending for table in ready.step.tables_written}
    moved = set(ours)  # the first round finds out
    while not crew.stop.is_set():
        before, moved = moved, set()
        for ready in ending:
            if _has_news(ready, ours, before | moved) and crew.run_to_end(ready):
                moved |= set(ready.step.tables_written)
        crew.look_after()
        if not moved:
            crew.stop.wait(IDLE)


def _has_news(ready: Prepared, ours: set[str], moved: set[str]) -> bool:
    """A step whose streams are all written in this loop has nothing to do until one of them changed."""
    streams = [read for read in ready.step.reads.values() if not read.static]
    return any(read.table not in ours or read.table in moved for read in streams)
