"""The registry of expectation kinds: the keys of an entry of `expect`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Strict

from headrace.config.value_types import ImportPath, Model, TupleOf


class Expectation(Model):
    """One field for each kind of expectation. `expectations.row_checks` implements the kinds."""

    not_null: TupleOf[str] | None = None
    # For each column: the lowest and the highest value. Strict(False) converts the YAML list to a tuple.
    between: dict[str, Annotated[tuple[Any, Any], Strict(False)]] | None = None
    one_of: dict[str, TupleOf[Any]] | None = None  # for each column: the allowed values
    matches: dict[str, str] | None = None  # for each column: a regular expression
    rule: ImportPath | None = None  # a function that returns a boolean Column
    unique: TupleOf[str] | None = None  # columns whose values, taken together, occur only once in a batch


class Rule(Expectation):
    """An entry of `expect`: exactly one expectation, and what happens to a row that fails it."""

    on_fail: Literal["quarantine", "drop", "warn", "stop"] = "quarantine"


EXPECTATIONS = tuple(Expectation.model_fields)
# The kinds that compare the rows of a batch with each other. They cannot apply to an input, whose rows are checked one
# by one.
BATCH_EXPECTATIONS = ("unique",)
