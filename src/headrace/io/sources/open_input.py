"""Open the inputs of a step, sources and tables, as DataFrames.

The rows of a source may have additional columns about the raw record (`verdict.SOURCE_COLUMNS`). They are used to check
the rows, and are then removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import checks_source_rows
from headrace.config.models import Environment, FileSource, Read
from headrace.errors import DataError, HeadraceError, one_line
from headrace.expectations import verdict
from headrace.io.delta.delta_table import table_of
from headrace.io.sources.declared_schema import declared_schema
from headrace.io.sources.file_source import inferred_schema
from headrace.io.watermarks import without_watermark_marks
from headrace.spark.columns import require_columns
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# The types of the columns that a change data feed adds.
CHANGE_COLUMN_TYPES = {"_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp"}


def open_input(
    spark: SparkSession, read: Read, environment: Environment, pending: Mapping[str, StructType] | None = None
) -> DataFrame:
    """Return one input as a DataFrame, with verdicts if its rows are checked, and with the watermark if it has one.

    `pending` has the schema of each table that this run will create or add columns to. An empty input replaces such a
    table.
    Raise DataError if the source or table cannot be opened, ConfigurationError if the input's configuration is invalid.
    """
    if pending and read.table in pending:
        return _empty_input(spark, pending[str(read.table)], read)
    if read.source is not None:
        return _open_source(spark, read, environment)
    return _open_table(spark, read, environment)


def table_exists(spark: SparkSession, name: str, environment: Environment) -> bool:
    """Return whether the table has been created in this environment."""
    return table_of(environment, name).exists(spark)


def _open_source(spark: SparkSession, read: Read, environment: Environment) -> DataFrame:
    name = str(read.source)
    source = environment.sources[name]
    source = source.model_copy(update={"options": {**source.options, **read.options}})
    try:
        if read.infer and isinstance(source, FileSource):
            schema: StructType | None = inferred_schema(spark, source)
        else:
            schema = declared_schema(read)
        open_stream = import_module(source.implementation).open_stream
        frame = without_watermark_marks(open_stream(spark, source, schema))
    except HeadraceError:
        raise
    except Exception as error:
        raise DataError(
            f"source {name!r} cannot be opened: {one_line(error)}",
            where=source.location,
            fix="put the data at this location, or correct the source in the environment's file",
        ) from error
    if checks_source_rows(read, environment):
        frame = verdict.check_source_rows(frame, read)
    else:
        frame = frame.drop(*verdict.SOURCE_COLUMNS)
    return _with_watermark(frame, read)


def _open_table(spark: SparkSession, read: Read, environment: Environment) -> DataFrame:
    table = table_of(environment, str(read.table))
    if not table.exists(spark):
        raise DataError(
            f"table {table.name!r} does not exist yet",
            where=table.location,
            fix="run the step that writes this table, then this step",
        )
    changes = {"readChangeFeed": "true"} if read.changes else {}
    try:
        if read.static:
            return without_watermark_marks(table.read(spark, read.options))
        frame = without_watermark_marks(table.stream(spark, {**read.options, **changes}))
    except Exception as error:
        fix = "correct the input's options" if read.options else "inspect the table with `headrace show`"
        raise DataError(
            f"table {table.name!r} cannot be read: {one_line(error)}", where=table.location, fix=fix
        ) from error
    return _with_watermark(frame, read)


def _empty_input(spark: SparkSession, schema: StructType, read: Read) -> DataFrame:
    """Return an input without rows, with the schema that the table will have.

    If the changes of the table are read, add the columns of a change data feed.
    """
    if read.static:
        return spark.createDataFrame([], schema)
    from pyspark.sql import functions as F

    types = {field.name: field.dataType for field in schema.fields} | (CHANGE_COLUMN_TYPES if read.changes else {})
    # The nulls are elements of arrays, at an index that is no literal. Spark would replace the columns by the nulls
    # themselves, and the columns would be missing in the query's state (4.2.0).
    index = F.col("value").cast("int")
    columns = [F.get(F.array(F.lit(None).cast(data_type)), index).alias(name) for name, data_type in types.items()]
    return _with_watermark(spark.readStream.format("rate").load().select(*columns), read)


def _with_watermark(frame: DataFrame, read: Read) -> DataFrame:
    """Return the DataFrame with the input's watermark, if it has one."""
    if read.watermark is None:
        return frame
    require_columns(frame, "the watermark", [read.watermark.column])
    with configuration_errors("the watermark"):
        return frame.withWatermark(read.watermark.column, read.watermark.delay)
