"""Turn the rules of `expect` into checks: columns that are true for rows that fail.

A check looks at one row, or compares the rows of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from headrace.config.kinds.expectation import EXPECTATIONS, Rule
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
class BatchCheck:
    """A check that compares the rows of a batch. Of equal rows, the first in the given order passes."""

    name: str
    failed: Callable[[Sequence[Column]], Column]
    on_fail: str = "quarantine"


@dataclass(frozen=True)
class ExpectationKind:
    """A kind of rule, by functions of its value in `expect`; either `row_failed` or `batch_failed` is given."""

    names: Callable[[Any], list[str]]  # one for each check
    columns: Callable[[Any], Iterable[str]]  # that the rows must have
    row_failed: Callable[[Any], list[Column]] | None = None
    batch_failed: Callable[[Any, Sequence[Column]], Column] | None = None


def row_checks(rules: Iterable[Rule]) -> list[RowCheck]:
    """Return the checks of single rows that the rules ask for."""
    from pyspark.sql import functions as F

    # Only not_null fails on null: coalesce turns an unknown result into "passed".
    return [
        RowCheck(name, F.coalesce(failed, F.lit(False)), rule.on_fail)
        for rule in rules
        for kind, value in _kinds_of(rule)
        if kind.row_failed is not None
        for name, failed in zip(kind.names(value), kind.row_failed(value), strict=True)
    ]


def batch_checks(rules: Iterable[Rule]) -> list[BatchCheck]:
    """Return the checks of whole batches that the rules ask for."""
    return [
        BatchCheck(name, partial(kind.batch_failed, value), rule.on_fail)
        for rule in rules
        for kind, value in _kinds_of(rule)
        if kind.batch_failed is not None
        for name in kind.names(value)
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
    for name in EXPECTATIONS:
        value = getattr(rule, name)
        if value is not None:
            yield IMPLEMENTATIONS[name], value


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


def _is_copy(columns: Sequence[str], order: Sequence[Column]) -> Column:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = [F.col(column) for column in columns]
    has_null = reduce(or_, [key.isNull() for key in keys])
    return ~has_null & (F.row_number().over(Window.partitionBy(*keys).orderBy(*order)) > 1)


def _named(prefix: str) -> Callable[[Iterable[str]], list[str]]:
    return lambda columns: [f"{prefix} {column}" for column in columns]


IMPLEMENTATIONS: dict[str, ExpectationKind] = {
    "not_null": ExpectationKind(_named("not_null"), tuple, _is_null),
    "between": ExpectationKind(
        lambda limits: [f"between {column} {low} and {high}" for column, (low, high) in limits.items()],
        tuple,
        _is_outside,
    ),
    "one_of": ExpectationKind(_named("one_of"), tuple, _is_not_in),
    "matches": ExpectationKind(_named("matches"), tuple, _does_not_match),
    "rule": ExpectationKind(lambda path: [f"rule {path.rpartition(':')[2]}"], lambda path: (), _does_not_pass),
    "unique": ExpectationKind(lambda columns: [f"unique {', '.join(columns)}"], tuple, batch_failed=_is_copy),
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
