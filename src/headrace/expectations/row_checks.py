"""What the rules of `expect` ask of a row, and whether rows can be asked that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.locations import nearest
from headrace.config.models import Rule
from headrace.errors import ConfigurationError, HeadraceError, Problem, in_a_line
from headrace.graph.resolve import resolve

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True)
class Test:
    """One question asked of each row; `failed` is true for a row that does not pass."""

    name: str
    failed: Column
    on_fail: str = "quarantine"


def tests_of(rules: Iterable[Rule]) -> list[Test]:
    """The tests that the `expect` entries ask for."""
    return [test for rule in rules for test in _tests(rule)]


def names_of(rules: Iterable[Rule]) -> list[str]:
    """The names of those tests."""
    return [name for rule in rules for name in _names(rule)]


def columns_of(rules: Iterable[Rule]) -> Iterator[str]:
    """The columns that the rules name."""
    for rule in rules:
        for named in (rule.not_null, rule.between, rule.one_of, rule.matches):
            yield from named or ()


@contextmanager
def told(what: str) -> Iterator[None]:
    """Says of which part of the configuration Spark complains: a column that is not there, a rule that raises."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be applied: {in_a_line(error)}", fix="correct the columns and values that it names"
        ) from error


def quoted(column: str) -> str:
    """The name of a column so that Spark takes it for what it is: one with a dot is no field of another."""
    return "`" + column.replace("`", "``") + "`"


def require_columns(frame: DataFrame, what: str, wanted: Iterable[str], *, whole: bool = False) -> None:
    """Raises all columns that the frame lacks; of `person.name` it has to have `person`, or with `whole` all of it."""
    known = {name.lower() for name in frame.columns}

    def is_known(column: str) -> bool:
        part = column.partition(".")[0].strip("`").lower()
        return column.lower() in known if whole else bool({part, column.strip("`").lower()} & known)

    missing = [column for column in wanted if not is_known(column)]
    if missing:
        raise ConfigurationError.of(
            Problem("", f"{what} names a column {column!r} that is not there", nearest(column, frame.columns))
            for column in dict.fromkeys(missing)
        )


def require_fitting(frame: DataFrame, rules: Iterable[Rule]) -> None:
    """Raises what would fail in a batch: values of another kind than their column, patterns that Java cannot read."""
    problems: list[Problem] = []
    for rule in rules:
        for kind, chosen in (("between", rule.between), ("one_of", rule.one_of)):
            for column, values in (chosen or {}).items():
                with told("expect"):
                    (field,) = frame.select(column).schema.fields
                if wrong := _of_another_kind(field.dataType, values):
                    message = f"{kind} compares {column!r}, which is {field.dataType.simpleString()}, with {wrong[0]!r}"
                    problems.append(Problem("", message, f"write {wrong[1]}, or cast the column in a transform"))
        for column, pattern in (rule.matches or {}).items():
            if said := _unreadable(frame, pattern):
                fix = "write it as Java's regular expressions are written"
                problems.append(Problem("", f"matches {column!r}: {pattern!r} cannot be read: {said}", fix))
    if problems:
        raise ConfigurationError.of(problems)


def _names(rule: Rule) -> list[str]:
    if rule.not_null is not None:
        return [f"not_null {column}" for column in rule.not_null]
    if rule.between is not None:
        return [f"between {column} {low} and {high}" for column, (low, high) in rule.between.items()]
    if rule.one_of is not None:
        return [f"one_of {column}" for column in rule.one_of]
    if rule.matches is not None:
        return [f"matches {column}" for column in rule.matches]
    assert rule.rule is not None
    return [f"rule {rule.rule.rpartition(':')[2]}"]


def _tests(rule: Rule) -> list[Test]:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    if rule.not_null is not None:
        failed = [F.col(column).isNull() for column in rule.not_null]
    elif rule.between is not None:
        failed = [~F.col(column).between(low, high) for column, (low, high) in rule.between.items()]
    elif rule.one_of is not None:
        # Of a null among them Spark would make that no row ever fails.
        named = {column: [value for value in values if value is not None] for column, values in rule.one_of.items()}
        failed = [~F.col(column).isin(*values) for column, values in named.items()]
    elif rule.matches is not None:
        # Java's $ also stands before a last line break.
        failed = [~F.col(column).rlike(rf"\A(?:{pattern})\z") for column, pattern in rule.matches.items()]
    else:
        assert rule.rule is not None
        passed = resolve(rule.rule)()
        if not isinstance(passed, Column):
            raise ConfigurationError(
                f"rule {rule.rule} returned a {type(passed).__name__}",
                fix="return a Column that is true for a good row",
            )
        failed = [~passed]
    # Only not_null fails on null: an unknown answer is no failure.
    return [
        Test(name, F.coalesce(test, F.lit(False)), rule.on_fail)
        for name, test in zip(_names(rule), failed, strict=True)
    ]


def _of_another_kind(column: DataType, values: Iterable[Any]) -> tuple[Any, str] | None:
    """A value that Spark would cast the column to row by row, and fail; what to write instead."""
    from pyspark.sql.types import NumericType, StringType

    for kind, cast, instead in ((StringType, (int, float), "text, in quotes"), (NumericType, str, "numbers")):
        wrong = [value for value in values if isinstance(column, kind) and isinstance(value, cast)]
        if wrong:
            return wrong[0], instead
    return None


def _unreadable(frame: DataFrame, pattern: str) -> str:
    """What Java says of a pattern that is none; nothing where there is no way to Java."""
    jvm = getattr(frame.sparkSession, "_jvm", None)
    try:
        if jvm is not None:
            jvm.java.util.regex.Pattern.compile(pattern)
    except Exception as error:
        return in_a_line(error)
    return ""
