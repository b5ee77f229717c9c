"""Find cycles in dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

N = TypeVar("N")


def find_cycle(predecessors: Mapping[N, Iterable[N]]) -> list[N]:
    """Return one cycle, each node before a node that depends on it; empty if there is none.

    The cycle starts with the node that comes first in `predecessors`, so that messages do not depend on the search.
    """
    try:
        TopologicalSorter(predecessors).prepare()
    except CycleError as error:
        cycle: list[N] = list(error.args[1][:-1])
        start = cycle.index(min(cycle, key=list(predecessors).index))
        return cycle[start:] + cycle[:start]
    return []
