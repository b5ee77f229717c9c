"""Quarantine tables: quarantined rows, with the names of the checks that they failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.models import Environment, Step
from headrace.expectations.verdict import VERDICT
from headrace.io.delta.delta_table import Table, table_of
from headrace.spark.ddl import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

QUARANTINE_SCHEMA = (
    "raw STRING, reasons ARRAY<STRING>, position STRING, step STRING, batch BIGINT, quarantined_at TIMESTAMP"
)


def quarantine_table(step: Step, environment: Environment) -> Table | None:
    """Return the table for the step's quarantined rows, named after the first table that the step writes.

    Return None if the step writes no table.
    """
    return next((table_of(environment, name + QUARANTINE_SUFFIX) for name in step.tables_written), None)


def tables_with_quarantine(step: Step, environment: Environment) -> set[str]:
    """Return the names of the tables that the step writes, its quarantine table included."""
    quarantine = quarantine_table(step, environment)
    return {*step.tables_written, *([quarantine.name] if quarantine else [])}


def quarantine_schema() -> StructType:
    """Return the schema of every quarantine table."""
    return parse_ddl(QUARANTINE_SCHEMA)


def quarantined_rows(verdicts: DataFrame, step: str, batch: int) -> DataFrame:
    """Return the rows of the quarantine table for those verdicts that quarantine their row."""
    from pyspark.sql import functions as F

    quarantined = verdicts.where(F.size(f"{VERDICT}.quarantined") > 0)
    # As literals, batch and time would be part of the generated code, which Spark would then compile for each batch.
    # Therefore they are elements of arrays. The index is not a literal either: otherwise Spark would replace the access
    # to the array by the literal.
    zero = F.size(f"{VERDICT}.quarantined") * 0
    return quarantined.select(
        F.col(f"{VERDICT}.raw").alias("raw"),
        F.col(f"{VERDICT}.quarantined").alias("reasons"),
        F.col(f"{VERDICT}.position").alias("position"),
        F.lit(step).alias("step"),
        F.get(F.array(F.lit(batch).cast("bigint")), zero).alias("batch"),
        F.get(F.array(F.current_timestamp()), zero).alias("quarantined_at"),
    )
