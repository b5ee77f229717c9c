"""The registry of expectation kinds: the keys of an entry of `expect`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Strict

from headrace.config.value_types import ImportPath, Model, TupleOf


class Expectation(Model):
    """One field for each kind of expectation. `expectations.row_checks` implements the kinds."""

    not_null: TupleOf[str] | None = None
    between: dict[str, Annotated[tuple[Any, Any], Strict(False)]] | None = None
    one_of: dict[str, TupleOf[Any]] | None = None
    matches: dict[str, str] | None = None
    rule: ImportPath | None = None
    unique: TupleOf[str] | None = None


class Rule(Expectation):
    """An entry of `expect`: exactly one expectation, and what happens to a row that fails it."""

    on_fail: Literal["quarantine", "drop", "warn", "stop"] = "quarantine"


EXPECTATIONS = tuple(Expectation.model_fields)
# These compare the rows of a batch. They cannot apply to an input, because its rows are checked one by one.
BATCH_EXPECTATIONS = ("unique",)
