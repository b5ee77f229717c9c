"""The registry of expectation kinds: the keys of an entry of `expect`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from headrace.config.value_types import ImportPath, Model, TupleOf


class Expectation(Model):
    """One field for each kind of expectation. `expectations.row_checks` implements the kinds."""

    not_null: TupleOf[str] | None = Field(
        default=None, description="Columns that are not null.", examples=[["order_id"]]
    )
    # Strict(False) converts the YAML list to a tuple.
    between: dict[str, Annotated[tuple[Any, Any], Strict(False)]] | None = Field(
        default=None,
        description="For each column: the lowest and the highest value.",
        examples=[{"quantity": [1, 1000]}],
    )
    one_of: dict[str, TupleOf[Any]] | None = Field(
        default=None, description="For each column: the allowed values.", examples=[{"status": ["open", "paid"]}]
    )
    matches: dict[str, str] | None = Field(
        default=None,
        description="For each column: a regular expression, in Java's syntax, for the whole value.",
        examples=[{"order_id": "o[0-9]+"}],
    )
    rule: ImportPath | None = Field(
        default=None,
        description="A Python function without parameters that returns a boolean Column.",
        examples=["shop.orders:amount_matches"],
    )
    unique: TupleOf[str] | None = Field(
        default=None,
        description="Columns whose values, taken together, occur only once in a batch. Only under a step.",
        examples=[["order_id"]],
    )


class Rule(Expectation):
    """An entry of `expect`: exactly one expectation, and what happens to a row that fails it."""

    on_fail: Literal["quarantine", "drop", "warn", "stop"] = Field(
        default="quarantine",
        description="What happens to a row that fails: `quarantine` writes it to the quarantine table, `drop` only "
        "counts it, `warn` counts it and writes it to the step's tables, `stop` stops the step.",
        examples=["warn"],
    )


EXPECTATIONS = tuple(Expectation.model_fields)
# The kinds that compare the rows of a batch with each other. They cannot apply to an input, whose rows are checked one
# by one.
BATCH_EXPECTATIONS = ("unique",)
