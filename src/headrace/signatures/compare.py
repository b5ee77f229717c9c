"""Compare two signatures of a query, and give a verdict on each change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.signatures.changes import Change, StateCheck, Verdict, change
from headrace.signatures.compare_operators import compare_stateful
from headrace.signatures.compare_output import compare_output
from headrace.signatures.compare_sinks import compare_sinks
from headrace.signatures.input_names import with_input_names_of
from headrace.signatures.signature import Input, Operator, Signature
from headrace.signatures.state_decision import StateDecision

NEW_ROWS = "applies to new rows; rows that are written stay as they are"
NEW_ROWS_AND_STATE = "applies to new rows; rows that are written, and the state, stay as they are"
OFFSETS = "the checkpoint has the offsets of the old sources, by position"
POSITION = re.compile(r"after \w+: ")  # of a filter, relative to the stateful operators


def compare(old: Signature, new: Signature, *, state_check: StateCheck | None = None) -> tuple[Change, ...]:
    """Return all changes from `old` to `new`; an empty tuple if the query computes the same.

    `state_check` is Spark's own comparison of the new query with the checkpoint; None if there was none.
    """
    comparable = (old.spark, old.python, old.format) == (new.spark, new.python, new.format)
    old = with_input_names_of(new, old)
    decision = StateDecision(state_check)
    changes = [*_compare_sources(old, new)]
    changes += compare_stateful(old.stateful, new.stateful, decision, comparable=comparable)
    if comparable:
        changes += _compare_rows(old, new)
    changes += _compare_output_mode(old, new)
    changes += compare_sinks(old.sinks, new.sinks)
    if comparable:
        changes += compare_output(old, new)
    else:
        changes += _compare_versions(old, new, state_check)
    changes += _compare_session(old, new)
    if state_check and state_check.is_refused and not decision.explains_refusal:
        sentence = f"Spark refuses the checkpoint, although no change explains it: {state_check.reason}"
        changes.append(Change("checkpoint", "", "", Verdict.NEEDS_NEW_GENERATION, sentence))
    return tuple(changes)


def _compare_sources(old: Signature, new: Signature) -> Iterator[Change]:
    verdict = Verdict.NEEDS_NEW_GENERATION
    before, after = _inputs(old.sources), _inputs(new.sources)
    if [item.kind for item in old.sources] != [item.kind for item in new.sources]:
        yield change("sources", "sources", before, after, verdict, OFFSETS)
    elif _reads(old.sources) != _reads(new.sources):
        for number, (source, other) in enumerate(zip(old.sources, new.sources, strict=True)):
            if source.name != other.name:
                what = f"input {other.input} reads"
                yield change(f"sources[{number}].name", what, source.name, other.name, verdict, OFFSETS)
    elif before != after:
        yield change("sources", "the order of the sources", before, after, verdict, OFFSETS)
    if old.static_inputs != new.static_inputs:
        texts = _inputs(old.static_inputs), _inputs(new.static_inputs)
        yield change("static_inputs", "static inputs", *texts, Verdict.SAFE_FOR_NEW_ROWS, NEW_ROWS)


def _compare_rows(old: Signature, new: Signature) -> Iterator[Change]:
    """Yield the changes of watermarks, filters, static joins and other operators without state."""
    if len(old.watermarks) != len(new.watermarks):
        lists = (", ".join(f"{item.column} {item.delay}" for item in each.watermarks) for each in (old, new))
        before_list, after_list = lists
        effect = "state may expire earlier or later than before, or never"
        yield change("watermarks", "watermarks", before_list, after_list, Verdict.SAFE_FOR_NEW_ROWS, effect)
    else:
        for number, (before, after) in enumerate(zip(old.watermarks, new.watermarks, strict=True)):
            path = f"watermarks[{number}]"
            if before.column != after.column:
                effect = "the watermark of the old column would be compared with the times of the new one"
                columns = before.column, after.column
                yield change(f"{path}.column", "watermark's column", *columns, Verdict.WRONG_ROWS, effect)
            if before.delay != after.delay:
                effect = "applies from the next batch on; the watermark never moves back"
                delays = before.delay, after.delay
                yield change(f"{path}.delay", "watermark's delay", *delays, Verdict.SAFE, effect)
    parts = {
        "filters": ("filter", *_filters(old, new)),
        "joins": ("join with static inputs", _joins(old.joins), _joins(new.joins)),
        "others": ("other operators", old.others, new.others),
    }
    for path, (what, before_texts, after_texts) in parts.items():
        if before_texts != after_texts:
            removed = " and ".join((Counter(before_texts) - Counter(after_texts)).elements())
            added = " and ".join((Counter(after_texts) - Counter(before_texts)).elements())
            if removed == added:  # only their order differs
                removed, added = " and ".join(before_texts), " and ".join(after_texts)
            effect = NEW_ROWS_AND_STATE if old.stateful else NEW_ROWS
            yield change(path, what, removed, added, Verdict.SAFE_FOR_NEW_ROWS, effect)


def _compare_output_mode(old: Signature, new: Signature) -> Iterator[Change]:
    if old.output_mode != new.output_mode:
        modes = old.output_mode, new.output_mode
        effect = "new rows reach the sink in another output mode than the old ones"
        yield change("output_mode", "output mode", *modes, Verdict.SAFE_FOR_NEW_ROWS, effect)


def _compare_session(old: Signature, new: Signature) -> Iterator[Change]:
    verdict = Verdict.SAFE_FOR_NEW_ROWS
    if old.time_zone != new.time_zone:
        effect = "dates and times as text mean other instants in new rows"
        yield change("time_zone", "session time zone", old.time_zone, new.time_zone, verdict, effect)
    if old.ansi != new.ansi:
        texts = str(old.ansi).lower(), str(new.ansi).lower()
        effect = "invalid values become errors or null in new rows"
        yield change("ansi", "spark.sql.ansi.enabled", *texts, verdict, effect)


def _compare_versions(old: Signature, new: Signature, check: StateCheck | None) -> Iterator[Change]:
    """Yield the change of versions: because of it, texts and hashes may differ although the query is the same."""
    before, after = (f"Spark {each.spark}, Python {each.python}, format {each.format}" for each in (old, new))
    if old.digest == new.digest:
        verdict, effect = Verdict.SAFE, "the query is the same"
    elif check and (check.is_accepted or check.is_refused):
        verdict, effect = Verdict.SAFE, "texts and code cannot be compared; Spark itself has compared the state"
    elif old.stateful or new.stateful:
        verdict, effect = Verdict.UNKNOWN, "texts and code cannot be compared, and Spark has not compared the state"
    else:
        verdict, effect = Verdict.SAFE, "texts and code cannot be compared; the query has no state"
    yield change("versions", "versions", before, after, verdict, effect)


def _filters(old: Signature, new: Signature) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the filters of both signatures.

    Return them without their positions if the stateful operators, to which positions refer, have changed.
    """
    if [item.kind for item in old.stateful] == [item.kind for item in new.stateful]:
        return old.filters, new.filters
    before, after = (tuple(sorted(POSITION.sub("", text) for text in each.filters)) for each in (old, new))
    return before, after


def _joins(joins: Sequence[Operator]) -> tuple[str, ...]:
    texts = []
    for join in joins:
        conditions = [key.text for key in join.keys] + [join.properties.get("condition", "")]
        texts.append(f"{join.properties['type']} on {' and '.join(filter(None, conditions))}")
    return tuple(texts)


def _inputs(inputs: Sequence[Input]) -> str:
    return ", ".join(f"{item.name or item.input} ({item.kind})" for item in inputs)


def _reads(inputs: Sequence[Input]) -> Counter[tuple[str, str]]:
    return Counter((item.kind, item.name) for item in inputs)
