"""Access Spark's plans and expressions, which are Scala objects in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def items(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    for number in range(sequence.size()):
        yield sequence.apply(number)


def class_name(scala_object: Any) -> str:
    return str(scala_object.getClass().getSimpleName())


def column_id(column: Any) -> str:
    """Return the id of a named expression, as plans print it after `#`."""
    return str(column.exprId().id())


def type_name(expression: Any) -> str:
    return str(expression.dataType().catalogString())


def conjuncts(condition: Any) -> list[Any]:
    """Return the conditions that AND combines; the condition itself if it is no AND."""
    if class_name(condition) != "And":
        return [condition]
    return [part for side in items(condition.children()) for part in conjuncts(side)]
