"""Read the joins of a plan, and the operators that have state on a stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headrace.signatures.code_fingerprint import code_fingerprint
from headrace.signatures.plan_nodes import class_name, conjuncts, items, type_name
from headrace.signatures.python_functions import declared_state, load_function
from headrace.signatures.signature import Column, Operator

ReadColumn = Callable[[Any], Column]
STATE_FUNCTIONS = {
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithStateInPySpark": "transformWithState",
}


def read_deduplication(node: Any, column: ReadColumn) -> Operator:
    kind = {"Deduplicate": "dropDuplicates", "Distinct": "distinct"}.get(
        node.nodeName(), "dropDuplicatesWithinWatermark"
    )
    keys = node.output() if kind == "distinct" else node.keys()
    return Operator(kind, keys=tuple(map(column, items(keys))))


def read_aggregation(node: Any, column: ReadColumn) -> Operator:
    """Return an aggregation: its keys, and as values the other columns that it computes."""
    keys = tuple(map(column, items(node.groupingExpressions())))
    texts = {key.text for key in keys}
    computed = map(column, items(node.aggregateExpressions()))
    return Operator("aggregate", keys=keys, values=tuple(value for value in computed if value.text not in texts))


def read_join(node: Any, column: ReadColumn) -> Operator:
    """Return a join: its key columns, and its type and further conditions as properties.

    The order of keys is the layout of the state of a join of two streams. With a static side, it has no meaning.
    """
    sides = ["stream" if side.isStreaming() else "static" for side in items(node.children())]
    condition = node.condition()
    parts = conjuncts(condition.get()) if condition.isDefined() else []
    keys, others = [], []
    for part in parts:
        text = column(part).text
        if class_name(part) in ("EqualTo", "EqualNullSafe"):
            keys.append(Column("", type_name(part.left()), text))
        else:
            others.append(text)
    if "static" in sides:
        keys.sort(key=lambda key: key.text)
    properties = {"type": _join_type(node), "sides": " with ".join(sides)}
    if others:
        properties["condition"] = " and ".join(sorted(others))
    return Operator("join", keys=tuple(keys), properties=properties)


def read_limit(node: Any) -> Operator:
    return Operator("limit", properties={"rows": str(node.limitExpr().toString())})


def _join_type(node: Any) -> str:
    """Return the type of a join in the words of PySpark, such as "left" or "left anti"."""
    words = re.findall("[A-Z][a-z]*", str(node.joinType().toString()))
    return " ".join(words).lower().removesuffix(" outer")


def read_state_function(node: Any, column: ReadColumn) -> Operator:
    """Return applyInPandasWithState or transformWithState, with the hash of the user's code.

    Return only its kind if Spark's internals differ from those of 4.2.
    """
    from py4j.protocol import Py4JError

    kind = STATE_FUNCTIONS[node.nodeName()]
    try:
        read = _read_processor if kind == "transformWithState" else _read_function_with_state
        keys, properties = read(node)
        properties |= {
            "output": ", ".join(f"{item.name()} {type_name(item)}" for item in items(node.outputAttrs())),
            "output mode": str(node.outputMode().toString()),
        }
    except (AttributeError, TypeError, Py4JError):
        return Operator(kind)
    return Operator(kind, keys=tuple(map(column, keys)), properties=properties)


def _read_function_with_state(node: Any) -> tuple[list[Any], dict[str, str]]:
    return list(items(node.groupingAttributes())), {
        "code": code_fingerprint(load_function(node.functionExpr())),
        "state": str(node.stateType().catalogString()),
        "timeout": str(node.timeout().toString()),
    }


def _read_processor(node: Any) -> tuple[list[Any], dict[str, str]]:
    processor = load_function(node.functionExpr()).__self__._stateful_processor
    variables, settings = declared_state(processor)
    rows = next(items(node.children()))  # the other child is the initial state
    return list(items(rows.output()))[: node.groupingAttributesLen()], {
        "code": code_fingerprint(type(processor)),
        "settings": code_fingerprint(settings, module=type(processor).__module__),
        "state": "; ".join(variables),
        "time mode": str(node.timeMode().toString()),
        "interface": str(node.userFacingDataType().toString()),
    }
