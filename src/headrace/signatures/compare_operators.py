"""Compare the operators of two signatures that have state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.signatures.changes import Change, Verdict, change
from headrace.signatures.signature import Column, Operator
from headrace.signatures.state_decision import StateDecision, effect_on_state
from headrace.signatures.time_windows import describe_window

NAMES = {"aggregate": "aggregation", "join": "join of two streams"}
MIXED_WINDOWS = "rows of both {} would be mixed in the state and in the table"
NEW_VARIABLES = "state variables may be added and removed"
OLD_CONDITION = "which rows are in the state was decided by the old condition"
USER_CODE = "whether the old state still fits depends on the code"
# The properties that Spark does not compare with the state: the verdict on a change, and its effect.
PROPERTIES = {
    "code": (Verdict.UNKNOWN, USER_CODE),
    "settings": (Verdict.UNKNOWN, USER_CODE),
    "output": (Verdict.SAFE_FOR_NEW_ROWS, "only new rows have the new columns"),
    "output mode": (Verdict.SAFE_FOR_NEW_ROWS, "new rows reach the sink in another output mode than the old ones"),
    "rows": (Verdict.SAFE_FOR_NEW_ROWS, "the limit counts the rows that were written before"),
}


def compare_stateful(
    old: Sequence[Operator], new: Sequence[Operator], decision: StateDecision, *, comparable: bool
) -> Iterator[Change]:
    """Yield the changes of stateful operators.

    Unless `comparable`, texts and hashes were made by different versions: only the kinds of operators, the names and
    types of their keys, and their time windows are compared.
    """
    if len(old) != len(new):
        verdict = decision.verdict(Verdict.NEEDS_NEW_GENERATION)
        before_text, after_text = (", ".join(map(_brief, operators)) for operators in (old, new))
        effect = effect_on_state(verdict)
        yield change("stateful", "stateful operators", before_text, after_text, verdict, effect)
        return
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        path = f"stateful[{number}]"
        if before.kind != after.kind:
            verdict = decision.verdict(Verdict.NEEDS_NEW_GENERATION)
            what = f"stateful operator {number + 1}"
            yield change(f"{path}.kind", what, _brief(before), _brief(after), verdict, effect_on_state(verdict))
            continue
        yield from _compare_keys(path, before, after, decision, comparable=comparable)
        if comparable:
            yield from _compare_values(path, before, after, decision)
            yield from _compare_properties(path, before, after, decision)
            yield from _compare_state_columns(path, before, after, decision)


def _compare_keys(
    path: str, old: Operator, new: Operator, decision: StateDecision, *, comparable: bool
) -> Iterator[Change]:
    """Compare the keys: their number and types, which are the layout of the state, how they are computed, their names.

    Unless `comparable`, keys with the same names count as computed in the same way.
    """
    path, what = f"{path}.keys", f"keys of {_name(old)}"
    is_layout_same = _types(old.keys) == _types(new.keys)
    is_renamed = [key.name for key in old.keys] != [key.name for key in new.keys]
    is_computed_same = _texts(old.keys) == _texts(new.keys) or not (comparable or is_renamed)
    if windows := _changed_windows(old.keys, new.keys):
        verdict = decision.verdict(Verdict.WRONG_ROWS)
        for before, after in windows:
            yield _changed_window(path, before, after, verdict)
    elif not is_layout_same or not is_computed_same:
        verdict = decision.verdict(Verdict.WRONG_ROWS if is_layout_same else Verdict.NEEDS_NEW_GENERATION)
        describe = next(each for each in (_names, _texts, _typed_names) if each(old.keys) != each(new.keys))
        yield change(path, what, describe(old.keys), describe(new.keys), verdict, effect_on_state(verdict))
    elif is_renamed:
        effect = "the columns are renamed, and computed as before"
        yield change(path, what, _names(old.keys), _names(new.keys), Verdict.SAFE, effect)


def _changed_window(path: str, before: str, after: str, verdict: Verdict) -> Change:
    if before.startswith("gap ") and after.startswith("gap "):
        what, differ = "session gap", "gaps"
        before, after = before.removeprefix("gap "), after.removeprefix("gap ")
    else:
        what, differ = "window", "windows" if "," in before + after else "window sizes"
    return change(path, what, before, after, verdict, effect_on_state(verdict, MIXED_WINDOWS.format(differ)))


def _compare_values(path: str, old: Operator, new: Operator, decision: StateDecision) -> Iterator[Change]:
    """Compare the aggregates, but not their names: these belong to the output."""
    if _texts(old.values) == _texts(new.values):
        return
    is_known = old.state_columns and new.state_columns
    is_layout_same = len(old.values) == len(new.values) and (not is_known or old.state_columns == new.state_columns)
    verdict = decision.verdict(Verdict.WRONG_ROWS if is_layout_same else Verdict.NEEDS_NEW_GENERATION)
    texts = _texts(old.values), _texts(new.values)
    yield change(f"{path}.aggregates", "aggregates", *texts, verdict, effect_on_state(verdict))


def _compare_properties(path: str, old: Operator, new: Operator, decision: StateDecision) -> Iterator[Change]:
    for name in sorted(old.properties.keys() | new.properties.keys()):
        before, after = old.properties.get(name, ""), new.properties.get(name, "")
        if before == after:
            continue
        path_to, what = f"{path}.{name}", f"{name} of {_name(old)}"
        if name in PROPERTIES:
            yield change(path_to, what, before, after, *PROPERTIES[name])
        elif name == "state" and _shared_variables_are_same(old, new):
            yield change(path_to, what, before, after, Verdict.SAFE_FOR_NEW_ROWS, NEW_VARIABLES)
        else:
            is_condition = name == "condition"
            verdict = decision.verdict(Verdict.WRONG_ROWS if is_condition else Verdict.NEEDS_NEW_GENERATION)
            effect = effect_on_state(verdict, OLD_CONDITION) if is_condition else effect_on_state(verdict)
            yield change(path_to, what, before, after, verdict, effect)


def _compare_state_columns(path: str, old: Operator, new: Operator, decision: StateDecision) -> Iterator[Change]:
    """Compare the columns that a join has in its state: a column that a later operator uses is added to them."""
    if old.kind != "join" or not (old.state_columns and new.state_columns) or old.state_columns == new.state_columns:
        return
    verdict = decision.verdict(Verdict.NEEDS_NEW_GENERATION)
    for side, before, after in zip(("left", "right"), old.state_columns, new.state_columns, strict=False):
        if before != after:
            what = f"column types in the {side} state of the join"
            yield change(f"{path}.state_columns", what, before, after, verdict, effect_on_state(verdict))


def _shared_variables_are_same(old: Operator, new: Operator) -> bool:
    """Return whether all state variables that both processors declare have the same declaration."""
    if old.kind != "transformWithState":
        return False
    before, after = (
        dict(variable.partition(": ")[::2] for variable in operator.properties["state"].split("; "))
        for operator in (old, new)
    )
    return all(before[name] == after[name] for name in before.keys() & after.keys())


def _changed_windows(old: Sequence[Column], new: Sequence[Column]) -> list[tuple[str, str]]:
    """Return the old and the new description of each window that differs; an empty list if other keys differ too."""
    if len(old) != len(new):
        return []
    windows = []
    for before, after in zip(old, new, strict=True):
        if before.text != after.text:
            window, other = describe_window(before.text), describe_window(after.text)
            if not window or not other or window[0] != other[0]:
                return []
            windows.append((window[1], other[1]))
    return windows


def _name(operator: Operator) -> str:
    return NAMES.get(operator.kind, operator.kind)


def _brief(operator: Operator) -> str:
    """Return the operator as, for example, "aggregate(country, day)"."""
    keys = ", ".join(key.name or key.text for key in operator.keys)
    return f"{operator.kind}({keys})"


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name or column.text for column in columns)


def _texts(columns: Sequence[Column]) -> str:
    return ", ".join(column.text for column in columns)


def _types(columns: Sequence[Column]) -> list[str]:
    return [column.type for column in columns]


def _typed_names(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name or column.text} {column.type}" for column in columns)
