"""Rename the inputs in a signature, so that a renamed input is not a change of the query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headrace.signatures.signature import Column, Input, Operator, Signature, Watermark


def with_input_names_of(new: Signature, old: Signature) -> Signature:
    """Return the old signature with the input names of the new one, matched by position.

    An input's name is only its name in the step. What the input reads, and its position in the checkpoint, are not
    changed here, so that they can be compared. If the numbers of inputs differ, the names stay as they are.
    """
    names: dict[str, str] = {}
    for before, after in ((old.sources, new.sources), (old.static_inputs, new.static_inputs)):
        if len(before) == len(after):
            names |= {item.input: other.input for item, other in zip(before, after, strict=True)}
    if all(name == other for name, other in names.items()):
        return old
    pattern = re.compile(rf"(?<![\w.:])({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?=\.)")

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: names[match[1]], text)

    def renamed_inputs(inputs: Sequence[Input]) -> tuple[Input, ...]:
        return tuple(replace(item, input=names.get(item.input, item.input)) for item in inputs)

    def renamed_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
        return tuple(replace(column, text=renamed(column.text)) for column in columns)

    def renamed_operators(operators: Sequence[Operator]) -> tuple[Operator, ...]:
        return tuple(
            replace(
                operator,
                keys=renamed_columns(operator.keys),
                values=renamed_columns(operator.values),
                properties={name: renamed(text) for name, text in operator.properties.items()},
            )
            for operator in operators
        )

    return replace(
        old,
        sources=renamed_inputs(old.sources),
        static_inputs=renamed_inputs(old.static_inputs),
        stateful=renamed_operators(old.stateful),
        watermarks=tuple(Watermark(renamed(item.column), item.delay) for item in old.watermarks),
        filters=tuple(sorted(map(renamed, old.filters))),
        joins=renamed_operators(old.joins),
        others=tuple(map(renamed, old.others)),
        output=renamed_columns(old.output),
    )
