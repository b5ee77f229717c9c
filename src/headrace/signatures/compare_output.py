"""Compare the columns that a query returns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.signatures.changes import Change, Verdict, change
from headrace.signatures.signature import Column, Signature


def compare_output(old: Signature, new: Signature) -> Iterator[Change]:
    """Yield the changes of the output's columns, and of the formulas unless a change of an operator explains them."""
    before, after = _by_name(old), _by_name(new)
    removed = [_typed(before[name]) for name in before if _type(after, name) != before[name].type]
    added = [_typed(after[name]) for name in after if _type(before, name) != after[name].type]
    if removed or added:
        effect = "only new rows have the new columns" if added else "new rows lack them"
        texts = ", ".join(removed), ", ".join(added)
        yield change("output", "output columns", *texts, Verdict.SAFE_FOR_NEW_ROWS, effect)
    effect = "new rows are computed differently; rows that are written stay as they are"
    for name in before:
        if _type(after, name) != before[name].type:
            continue
        texts = before[name].text, after[name].text
        if texts[1] not in (texts[0], _explained(texts[0], old, new)):
            yield change(f"output.{name}", f"column {name}", *texts, Verdict.SAFE_FOR_NEW_ROWS, effect)


def _explained(text: str, old: Signature, new: Signature) -> str:
    """Return an old formula with the new keys and aggregates in place of the old ones.

    `compare_stateful` reports the changes of these already.
    """
    pairs = []
    for before, after in zip(old.stateful, new.stateful, strict=False):
        for columns, others in ((before.keys, after.keys), (before.values, after.values)):
            if len(columns) == len(others):
                pairs += [(column.text, other.text) for column, other in zip(columns, others, strict=True)]
    replacements = {old_text: new_text for old_text, new_text in pairs if old_text != new_text}
    if not replacements:
        return text
    pattern = "|".join(map(re.escape, sorted(replacements, key=len, reverse=True)))
    return re.sub(pattern, lambda match: replacements[match[0]], text)


def _by_name(signature: Signature) -> dict[str, Column]:
    """Return the columns of the output by name. Of columns with equal names, number all but the first."""
    columns: dict[str, Column] = {}
    for column in signature.output:
        name, count = column.name, 2
        while name in columns:  # a self join without a projection has equal names
            name, count = f"{column.name} ({count})", count + 1
        columns[name] = column
    return columns


def _type(columns: dict[str, Column], name: str) -> str | None:
    return columns[name].type if name in columns else None


def _typed(column: Column) -> str:
    return f"{column.name} {column.type}"
