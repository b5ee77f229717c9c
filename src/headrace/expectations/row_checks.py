"""What the rules of `expect` ask of a row, and whether rows can be asked that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.models import Rule
from headrace.errors import ConfigurationError, Problem, one_line
from headrace.graph.resolve import resolve
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True)
class RowCheck:
    """One question asked of each row; `failed` is true for a row that does not pass."""

    name: str
    failed: Column
    on_fail: str = "quarantine"


def row_checks(rules: Iterable[Rule]) -> list[RowCheck]:
    """The tests that the `expect` entries ask for."""
    return [test for rule in rules for test in _row_checks(rule)]


def check_names(rules: Iterable[Rule]) -> list[str]:
    """The names of those tests."""
    return [name for rule in rules for name in _check_names(rule)]


def rule_columns(rules: Iterable[Rule]) -> Iterator[str]:
    """The columns that the rules name."""
    for rule in rules:
        for named in (rule.not_null, rule.between, rule.one_of, rule.matches):
            yield from named or ()


def require_compatible_values(frame: DataFrame, rules: Iterable[Rule]) -> None:
    """Raises what would fail in a batch: values of another kind than their column, patterns that Java cannot read."""
    problems: list[Problem] = []
    for rule in rules:
        for kind, chosen in (("between", rule.between), ("one_of", rule.one_of)):
            for column, values in (chosen or {}).items():
                with configuration_errors("expect"):
                    (field,) = frame.select(column).schema.fields
                if wrong := _incompatible_value(field.dataType, values):
                    message = f"{kind} compares {column!r}, which is {field.dataType.simpleString()}, with {wrong[0]!r}"
                    problems.append(Problem("", message, f"write {wrong[1]}, or cast the column in a transform"))
        for column, pattern in (rule.matches or {}).items():
            if said := _pattern_error(frame, pattern):
                fix = "write it as Java's regular expressions are written"
                problems.append(Problem("", f"matches {column!r}: {pattern!r} cannot be read: {said}", fix))
    if problems:
        raise ConfigurationError.of(problems)


def _check_names(rule: Rule) -> list[str]:
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


def _row_checks(rule: Rule) -> list[RowCheck]:
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
        RowCheck(name, F.coalesce(test, F.lit(False)), rule.on_fail)
        for name, test in zip(_check_names(rule), failed, strict=True)
    ]


def _incompatible_value(column: DataType, values: Iterable[Any]) -> tuple[Any, str] | None:
    """A value that Spark would cast the column to row by row, and fail; what to write instead."""
    from pyspark.sql.types import NumericType, StringType

    for kind, cast, instead in ((StringType, (int, float), "text, in quotes"), (NumericType, str, "numbers")):
        wrong = [value for value in values if isinstance(column, kind) and isinstance(value, cast)]
        if wrong:
            return wrong[0], instead
    return None


def _pattern_error(frame: DataFrame, pattern: str) -> str:
    """What Java says of a pattern that is none; nothing where there is no way to Java."""
    jvm = getattr(frame.sparkSession, "_jvm", None)
    try:
        if jvm is not None:
            jvm.java.util.regex.Pattern.compile(pattern)
    except Exception as error:
        return one_line(error)
    return ""
