"""Quarantine tables: bad rows, with the reasons why they were kept out of the step's table."""

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
    """The table for the step's refused rows, beside the first table that it writes."""
    return next((table_of(environment, name + QUARANTINE_SUFFIX) for name in step.tables_written), None)


def bad_rows(verdicts: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return verdicts.where(F.size(f"{VERDICT}.refused") > 0)


def quarantine_rows(refused: DataFrame, step: str, batch: int) -> DataFrame:
    from pyspark.sql import functions as F

    first = F.size(f"{VERDICT}.refused") * 0
    return refused.select(
        F.col(f"{VERDICT}.raw").alias("raw"),
        F.col(f"{VERDICT}.refused").alias("reasons"),
        F.col(f"{VERDICT}.position").alias("position"),
        F.lit(step).alias("step"),
        F.get(F.array(F.lit(batch).cast("bigint")), first).alias("batch"),
        F.get(F.array(F.current_timestamp()), first).alias("quarantined_at"),
    )


def quarantine_schema() -> StructType:
    """The columns of every quarantine table."""
    return parse_ddl(QUARANTINE_SCHEMA)
