"""Compare the sinks of two signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.signatures.changes import Change, Verdict, change

# The keys of a sink that are compared first, in this order.
FIRST_KEYS = ("kind", "name", "mode", "keys", "sequence", "partition_by")
# The keys of a sink whose change leads to wrong rows, with the reason.
WRONG = {
    "mode": "rows that are in the sink were written in the old mode",
    "keys": "rows that are in the table are identified by the old keys",
    "sequence": "rows that are in the table were chosen by the old sequence",
}


def compare_sinks(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
    """Yield the changes of sinks, which are compared in their order."""
    if len(old) != len(new):
        effect = "a sink gets only the rows of the batches in which the query has it"
        before_text, after_text = ("; ".join(map(_brief, sinks)) for sinks in (old, new))
        yield change("sinks", "sinks", before_text, after_text, Verdict.SAFE_FOR_NEW_ROWS, effect)
        return
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        yield from _compare_sink(f"sinks[{number}]", before, after)


def _compare_sink(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    def text(sink: Mapping[str, Any], key: str) -> str:
        value = sink.get(key)
        if isinstance(value, (list, tuple)):
            return ", ".join(map(str, value))
        return "" if value is None or value is False else str(value)

    follows_from_mode = {"keys", "sequence"} if text(old, "mode") != text(new, "mode") else set()
    others = sorted((old.keys() | new.keys()) - set(FIRST_KEYS))
    for key in (*FIRST_KEYS, *others):
        before, after = text(old, key), text(new, key)
        if before == after or key in follows_from_mode:
            continue
        where = f"{path}.{key}"
        if key == "name":
            effect = "the new sink lacks all rows that were written so far"
            yield change(where, f"{text(old, 'kind')} of the sink".strip(), before, after, Verdict.WRONG_ROWS, effect)
        elif key in WRONG:
            yield change(where, f"{key} of {_brief(new)}", before, after, Verdict.WRONG_ROWS, WRONG[key])
        elif key == "partition_by" and after:
            effect = "a table's partition columns cannot be changed"
            yield change(
                where, f"partition columns of {_brief(new)}", before, after, Verdict.NEEDS_NEW_GENERATION, effect
            )
        else:
            effect = "it applies to new batches only"
            what = f"{key.replace('_', ' ')} of {_brief(new)}"
            yield change(where, what, before, after, Verdict.SAFE_FOR_NEW_ROWS, effect)


def _brief(sink: Mapping[str, Any]) -> str:
    return " ".join(str(sink[key]) for key in ("kind", "name") if sink.get(key)) or "sink"
