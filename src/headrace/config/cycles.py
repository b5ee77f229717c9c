"""Circles in what waits for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

N = TypeVar("N")


def find_cycle(before: Mapping[N, Iterable[N]]) -> list[N]:
    """One circle, each node waited for by the next; empty when there is none.

    It begins with the first of its nodes that was given, whichever the search met first.
    """
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle: list[N] = list(error.args[1][:-1])
        start = circle.index(min(circle, key=list(before).index))
        return circle[start:] + circle[:start]
    return []
