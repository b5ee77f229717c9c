"""Turn the rules of `expect` into columns that are true for rows that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    """A check of single rows: `failed` is true for a row that does not pass."""

    name: str
    failed: Column
    on_fail: str = "quarantine"


@dataclass(frozen=True)
class ExpectationKind:
    """A kind of rule, by the functions that take its value in `expect`."""

    names: Callable[[Any], list[str]]  # one for each check
    failed: Callable[[Any], list[Column]]  # in the same order
    columns: Callable[[Any], Iterable[str]] = tuple  # that the rows must have


def row_checks(rules: Iterable[Rule]) -> list[RowCheck]:
    """Return the checks that the rules ask for."""
    from pyspark.sql import functions as F

    # Only not_null fails on null: coalesce turns an unknown result into "passed".
    return [
        RowCheck(name, F.coalesce(failed, F.lit(False)), rule.on_fail)
        for rule in rules
        for kind, value in _kinds_of(rule)
        for name, failed in zip(kind.names(value), kind.failed(value), strict=True)
    ]


def check_names(rules: Iterable[Rule]) -> list[str]:
    """Return the names of the checks that the rules ask for."""
    return [name for rule in rules for kind, value in _kinds_of(rule) for name in kind.names(value)]


def rule_columns(rules: Iterable[Rule]) -> list[str]:
    """Return the columns that the rules name."""
    return [column for rule in rules for kind, value in _kinds_of(rule) for column in kind.columns(value)]


def require_compatible_values(frame: DataFrame, rules: Iterable[Rule]) -> None:
    """Raise ConfigurationError for rules that would fail in a batch: values of another type, invalid patterns."""
    problems: list[Problem] = []
    for rule in rules:
        for kind, columns in (("between", rule.between), ("one_of", rule.one_of)):
            for column, values in (columns or {}).items():
                with configuration_errors("expect"):
                    (field,) = frame.select(column).schema.fields
                if incompatible := _incompatible_value(field.dataType, values):
                    value, instead = incompatible
                    message = f"{kind} compares {column!r}, which is {field.dataType.simpleString()}, with {value!r}"
                    problems.append(Problem("", message, f"write {instead}, or cast the column in a transform"))
        for column, pattern in (rule.matches or {}).items():
            if error := _pattern_error(frame, pattern):
                fix = "write a regular expression as Java reads it"
                problems.append(Problem("", f"matches {column!r}: {pattern!r} cannot be read: {error}", fix))
    if problems:
        raise ConfigurationError.of(problems)


def _kinds_of(rule: Rule) -> Iterator[tuple[ExpectationKind, Any]]:
    for name, kind in EXPECTATIONS.items():
        value = getattr(rule, name)
        if value is not None:
            yield kind, value


def _is_null(columns: Iterable[str]) -> list[Column]:
    from pyspark.sql import functions as F

    return [F.col(column).isNull() for column in columns]


def _is_outside(limits: dict[str, tuple[Any, Any]]) -> list[Column]:
    from pyspark.sql import functions as F

    return [~F.col(column).between(low, high) for column, (low, high) in limits.items()]


def _is_not_in(choices: dict[str, Iterable[Any]]) -> list[Column]:
    from pyspark.sql import functions as F

    # With a null in the list, `isin` never returns false.
    values = {column: [value for value in choice if value is not None] for column, choice in choices.items()}
    return [~F.col(column).isin(*choice) for column, choice in values.items()]


def _does_not_match(patterns: dict[str, str]) -> list[Column]:
    from pyspark.sql import functions as F

    # In Java, $ also matches before a final line break; \z does not.
    return [~F.col(column).rlike(rf"\A(?:{pattern})\z") for column, pattern in patterns.items()]


def _does_not_pass(path: str) -> list[Column]:
    from pyspark.sql import Column

    passed = resolve(path)()
    if not isinstance(passed, Column):
        raise ConfigurationError(
            f"rule {path} returned a {type(passed).__name__}", fix="return a Column that is true for a good row"
        )
    return [~passed]


def _named(prefix: str) -> Callable[[Iterable[str]], list[str]]:
    return lambda columns: [f"{prefix} {column}" for column in columns]


EXPECTATIONS: dict[str, ExpectationKind] = {
    "not_null": ExpectationKind(_named("not_null"), _is_null, tuple),
    "between": ExpectationKind(
        lambda limits: [f"between {column} {low} and {high}" for column, (low, high) in limits.items()],
        _is_outside,
        tuple,
    ),
    "one_of": ExpectationKind(_named("one_of"), _is_not_in, tuple),
    "matches": ExpectationKind(_named("matches"), _does_not_match, tuple),
    "rule": ExpectationKind(lambda path: [f"rule {path.rpartition(':')[2]}"], _does_not_pass, lambda path: ()),
}


def _incompatible_value(column_type: DataType, values: Iterable[Any]) -> tuple[Any, str] | None:
    """Return a value that Spark would cast the column to and fail, and what to write instead."""
    from pyspark.sql.types import NumericType, StringType

    for kind, cast_to, instead in ((StringType, (int, float), "text, in quotes"), (NumericType, str, "numbers")):
        incompatible = [value for value in values if isinstance(column_type, kind) and isinstance(value, cast_to)]
        if incompatible:
            return incompatible[0], instead
    return None


def _pattern_error(frame: DataFrame, pattern: str) -> str:
    """Return Java's error for an invalid pattern; empty if it is valid, or on Spark Connect."""
    jvm = getattr(frame.sparkSession, "_jvm", None)
    try:
        if jvm is not None:
            jvm.java.util.regex.Pattern.compile(pattern)
    except Exception as error:
        return one_line(error)
    return ""
