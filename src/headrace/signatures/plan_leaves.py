"""Read the leaves of a plan: the inputs, which `empty_inputs` marks with their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.signatures.empty_inputs import INPUT_OPTION
from headrace.signatures.expression_text import Lineage
from headrace.signatures.plan_nodes import column_id, items
from headrace.signatures.signature import Input


class PlanLeaves:
    """Collects the inputs of a plan in their order. `inputs` has, by input, the kind and the name of what it reads."""

    def __init__(self, inputs: Mapping[str, Mapping[str, str]]) -> None:
        self._inputs = inputs
        self._labels: dict[tuple[str, ...], str] = {}  # by the column ids of the leaf
        self.sources: list[Input] = []
        self.static_inputs: list[Input] = []

    def read(self, leaf: Any) -> dict[str, Lineage]:
        """Return the columns of a leaf, and add the leaf to the inputs unless the same leaf occurred before.

        A leaf is the same if its columns have the same ids. So both sides of a self join are inputs, as in the
        checkpoint, which has offsets for each side; branches of a union that read the same input share one.
        """
        columns = [(column_id(column), str(column.name())) for column in items(leaf.output())]
        if not columns:  # the initial state of transformWithState, if there is none
            return {}
        key = tuple(number for number, _ in columns)
        if key not in self._labels:
            self._labels[key] = self._add(leaf)
        label = self._labels[key]
        return {number: Lineage(name, f"{label}.{name}") for number, name in columns}

    def _add(self, leaf: Any) -> str:
        name, kind = _marked_name(leaf), str(leaf.nodeName())
        label = name or kind
        same = sum(known.partition(":")[0] == label for known in self._labels.values())
        label = f"{label}:{same + 1}" if same else label
        reads = self._inputs[name] if name else {"kind": kind, "name": ""}
        found = Input(label, reads["kind"], reads["name"])
        (self.sources if leaf.isStreaming() else self.static_inputs).append(found)
        return label


def _marked_name(leaf: Any) -> str:
    """Return the name of the input that a leaf reads; empty for data that the transform itself made or opened."""
    from py4j.protocol import Py4JError

    try:
        kind = leaf.nodeName()
        if kind == "StreamingRelation":
            options = leaf.dataSource().options()
        elif kind == "StreamingRelationV2":
            options = leaf.extraOptions()
        elif kind == "LogicalRelation":
            options = leaf.relation().options()
        else:
            options = leaf.options()
        name = options.get(INPUT_OPTION)
        if name is not None and hasattr(name, "isDefined"):
            name = name.get() if name.isDefined() else None
    except (AttributeError, TypeError, Py4JError):  # leaves of other kinds have no options
        return ""
    return str(name or "")
