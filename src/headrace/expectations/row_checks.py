"""Turn the rules of `expect` into checks: columns that are true for rows that fail.

A `RowCheck` depends on one row only. A `BatchCheck` compares the rows of a batch with each other.
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
    """A check of single rows: the column `failed` is true for rows that fail."""

    name: str
    failed: Column
    on_fail: str = "quarantine"


@dataclass(frozen=True)
class BatchCheck:
    """A check that compares the rows of a batch.

    `failed` takes the columns to sort by, and returns a column that is true for rows that fail. Of several rows with
    the same key, the first one in this order passes.
    """

    name: str
    failed: Callable[[Sequence[Column]], Column]
    on_fail: str = "quarantine"


@dataclass(frozen=True)
class ExpectationKind:
    """The functions that implement a kind of rule. Each takes the rule's value in `expect`.

    A kind has either `row_failed` or `batch_failed`.
    """

    names: Callable[[Any], list[str]]  # the names of the rule's checks
    columns: Callable[[Any], Iterable[str]]  # the columns that the rows must have
    row_failed: Callable[[Any], list[Column]] | None = None  # `RowCheck.failed` of each check
    batch_failed: Callable[[Any, Sequence[Column]], Column] | None = None  # see `BatchCheck.failed`


def row_checks(rules: Iterable[Rule]) -> list[RowCheck]:
    """Return the checks of single rows that the rules define."""
    from pyspark.sql import functions as F

    # A comparison with null gives null, which coalesce turns into "passed": only not_null fails for null.
    return [
        RowCheck(name, F.coalesce(failed, F.lit(False)), rule.on_fail)
        for rule in rules
        for kind, value in _kinds_of(rule)
        if kind.row_failed is not None
        for name, failed in zip(kind.names(value), kind.row_failed(value), strict=True)
    ]


def batch_checks(rules: Iterable[Rule]) -> list[BatchCheck]:
    """Return the checks of whole batches that the rules define."""
    return [
        BatchCheck(name, partial(kind.batch_failed, value), rule.on_fail)
        for rule in rules
        for kind, value in _kinds_of(rule)
        if kind.batch_failed is not None
        for name in kind.names(value)
    ]


def check_names(rules: Iterable[Rule]) -> list[str]:
    """Return the names of all checks that the rules define."""
    return [name for rule in rules for kind, value in _kinds_of(rule) for name in kind.names(value)]


def rule_columns(rules: Iterable[Rule]) -> list[str]:
    """Return the names of the columns that the rules name. A rule function names none."""
    return [column for rule in rules for kind, value in _kinds_of(rule) for column in kind.columns(value)]


def require_compatible_values(frame: DataFrame, rules: Iterable[Rule]) -> None:
    """Raise ConfigurationError for rules that would fail every batch.

    These compare a column with values of a wrong type, or match it with an invalid pattern.
    """
    problems: list[Problem] = []
    for rule in rules:
        for kind, columns in (("between", rule.between), ("one_of", rule.one_of)):
            for column, values in (columns or {}).items():
                with configuration_errors("expect"):  # the column may be an unknown field of a struct
                    (field,) = frame.select(column).schema.fields
                if incompatible := _incompatible_value(field.dataType, values):
                    value, required = incompatible
                    message = f"{kind} compares {column!r}, which is {field.dataType.simpleString()}, with {value!r}"
                    problems.append(Problem("", message, f"write {required}, or cast the column in a transform"))
        for column, pattern in (rule.matches or {}).items():
            if error := _pattern_error(frame, pattern):
                message = f"matches {column!r}: {pattern!r} is not a regular expression: {error}"
                problems.append(Problem("", message, "write a regular expression in Java's syntax"))
    if problems:
        raise ConfigurationError.of(problems)


def _kinds_of(rule: Rule) -> Iterator[tuple[ExpectationKind, Any]]:
    """Yield each kind that the rule uses, with the rule's value for it."""
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

    # A null in the list is ignored: with it, `isin` would return null instead of false.
    values = {column: [value for value in choice if value is not None] for column, choice in choices.items()}
    return [~F.col(column).isin(*choice) for column, choice in values.items()]


def _does_not_match(patterns: dict[str, str]) -> list[Column]:
    from pyspark.sql import functions as F

    # In Java, $ also matches before a final line break; \z does not.
    return [~F.col(column).rlike(rf"\A(?:{pattern})\z") for column, pattern in patterns.items()]


def _fails_rule_function(import_path: str) -> list[Column]:
    """Return the negated result of the user's rule function, which takes no arguments.

    Raise ConfigurationError if the result is not a column.
    """
    from pyspark.sql import Column

    passed = resolve(import_path)()
    if not isinstance(passed, Column):
        raise ConfigurationError(
            f"rule {import_path} returned a {type(passed).__name__}", fix="return a Column that is true for a good row"
        )
    return [~passed]


def _is_duplicate(columns: Sequence[str], order: Sequence[Column]) -> Column:
    """Return a column that is true for a row whose key is that of an earlier row in this order.

    Keys with nulls are never equal.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = [F.col(column) for column in columns]
    has_null = reduce(or_, [key.isNull() for key in keys])
    return ~has_null & (F.row_number().over(Window.partitionBy(*keys).orderBy(*order)) > 1)


def _named(prefix: str) -> Callable[[Iterable[str]], list[str]]:
    """Return a function that names the check of each column after the kind of rule and the column."""
    return lambda columns: [f"{prefix} {column}" for column in columns]


# `tuple` returns the columns of a rule's value: the items of a list, or the keys of a mapping.
IMPLEMENTATIONS: dict[str, ExpectationKind] = {
    "not_null": ExpectationKind(_named("not_null"), columns=tuple, row_failed=_is_null),
    "between": ExpectationKind(
        lambda limits: [f"between {column} {low} and {high}" for column, (low, high) in limits.items()],
        columns=tuple,
        row_failed=_is_outside,
    ),
    "one_of": ExpectationKind(_named("one_of"), columns=tuple, row_failed=_is_not_in),
    "matches": ExpectationKind(_named("matches"), columns=tuple, row_failed=_does_not_match),
    "rule": ExpectationKind(
        lambda import_path: [f"rule {import_path.rpartition(':')[2]}"],
        columns=lambda import_path: (),
        row_failed=_fails_rule_function,
    ),
    "unique": ExpectationKind(
        lambda columns: [f"unique {', '.join(columns)}"], columns=tuple, batch_failed=_is_duplicate
    ),
}


def _incompatible_value(column_type: DataType, values: Iterable[Any]) -> tuple[Any, str] | None:
    """Return the first value that Spark cannot compare with the column, and what to write instead.

    Return None if all values fit, or if the column has neither text nor numbers. To compare text with a number, Spark
    casts the text, which fails for text that is not a number.
    """
    from pyspark.sql.types import NumericType, StringType

    wrong_types: tuple[type, ...]
    if isinstance(column_type, StringType):
        wrong_types, required = (int, float), "text, in quotes"
    elif isinstance(column_type, NumericType):
        wrong_types, required = (str,), "numbers"
    else:
        return None
    return next(((value, required) for value in values if isinstance(value, wrong_types)), None)


def _pattern_error(frame: DataFrame, pattern: str) -> str:
    """Return Java's error for an invalid pattern. Return an empty text for a valid one, and always without a JVM."""
    jvm = getattr(frame.sparkSession, "_jvm", None)
    try:
        if jvm is not None:
            jvm.java.util.regex.Pattern.compile(pattern)
    except Exception as error:
        return one_line(error)
    return ""
