"""Compare the schemas of the tables that a step streams with those that its query was prepared for.

If a table gets a column, or Delta has widened the type of one, Delta stops the queries that stream the table, and
continues in a query that is opened again. If a column is dropped, renamed, or gets another type, Delta does not
continue from the checkpoint (Delta 4.4.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.config.models import Environment, Step
from headrace.errors import Problem
from headrace.io.delta.delta_merge import CHANGE_COLUMNS
from headrace.io.delta.delta_table import table_of
from headrace.spark.schema_differences import Difference, differences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# The last one is Spark's own: the columns of a query differ in number from those that Delta reads for it (4.2.0).
SCHEMA_CHANGED = re.compile(
    r"DELTA_SCHEMA_CHANGED|DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE|DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING|"
    r"assertion failed: Invalid batch:"
)


class ColumnChange(NamedTuple):
    """A difference between the schema of a table now and the one that a step was prepared for."""

    table: str
    column: Difference

    @property
    def is_compatible(self) -> bool:
        """Whether Delta continues the checkpoint of a step that streams the table."""
        return self.column.old is None or self.column.is_widening

    def __str__(self) -> str:
        column = f"column {self.column.name}"
        if self.column.old is None:
            return f"{column} {self.column.new_type} was added to table {self.table!r}"
        if self.column.new is None:
            return f"{column} {self.column.old_type} of table {self.table!r} was dropped or renamed"
        return f"{column} of table {self.table!r} is {self.column.new_type} now, and was {self.column.old_type}"


def is_schema_change(error: Any) -> bool:
    """Return whether a query failed because a table that it streams has another schema than when it was opened."""
    return SCHEMA_CHANGED.search(str(error)) is not None


def streamed_schemas(step: Step, inputs: Mapping[str, DataFrame]) -> dict[str, StructType]:
    """Return the schemas of the tables that a step streams, by input; `inputs` are the inputs of its query."""
    return {name: inputs[name].drop(*CHANGE_COLUMNS).schema for name in _streamed(step)}


def described_schemas(schemas: Mapping[str, StructType]) -> dict[str, dict[str, str]]:
    """Return the schemas for the record of a step."""
    return {name: {"schema": schema.json()} for name, schema in schemas.items()}


def recorded_schemas(step: Step, recorded: Mapping[str, Mapping[str, str]]) -> dict[str, StructType]:
    """Return the schemas that `described_schemas` has recorded for tables that the step still streams."""
    from pyspark.sql.types import StructType

    texts = {name: recorded.get(name, {}).get("schema") for name in _streamed(step)}
    return {name: StructType.fromJson(json.loads(text)) for name, text in texts.items() if text}


def table_changes(
    spark: SparkSession, step: Step, schemas: Mapping[str, StructType], environment: Environment
) -> list[ColumnChange]:
    """Return how the tables that a step streams differ from earlier `schemas` of them, by input."""
    changes = []
    for name, schema in schemas.items():
        table = table_of(environment, str(step.reads[name].table))
        if table.exists(spark):
            changes += [ColumnChange(table.name, each) for each in _differences(schema, table.read(spark).schema)]
    return changes


def refusals(step: str, changes: Iterable[ColumnChange], where: str, start_over: str) -> Iterator[Problem]:
    """Yield a problem for each change with which Delta does not continue the step.

    `start_over` is the command that resets the step.
    """
    for change in changes:
        if not change.is_compatible:
            yield Problem(
                where,
                f"step {step!r} cannot continue: {change}",
                f"undo the change of the table, or start over: {start_over}",
            )


def _streamed(step: Step) -> list[str]:
    """Return the inputs that stream a table. Omit those for which Delta itself keeps track of the table's schema."""
    tracked = {"schematrackinglocation", "schemalocation"}
    return [
        name
        for name, read in step.reads.items()
        if read.table is not None and not read.static and not tracked & {option.lower() for option in read.options}
    ]


def _differences(old: StructType, new: StructType) -> Iterator[Difference]:
    from pyspark.sql.types import NullType

    # A table that the run has created lacks the columns without a type, which Delta does not write (4.4.0).
    return (each for each in differences(old, new) if not isinstance(each.old, NullType))
