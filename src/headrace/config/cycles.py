"""Find cycles in dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Node = TypeVar("Node")


def find_cycle(predecessors: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """Return the nodes of one cycle, each followed by a node that depends on it; an empty list if there is no cycle.

    `predecessors` maps each node to the nodes that it depends on. The list starts with the node of the cycle that
    comes first in `predecessors`, so that error messages do not depend on the order of the search.
    """
    try:
        TopologicalSorter(predecessors).prepare()
    except CycleError as error:
        cycle: list[Node] = list(error.args[1][:-1])  # the last node of the error's list repeats the first one
        first_node = min(cycle, key=list(predecessors).index)
        start = cycle.index(first_node)
        return cycle[start:] + cycle[:start]
    return []
