"""Opens a step's inputs: outside sources and tables, as DataFrames.

Rows of an outside source come with three columns about how they arrived, from which `quality` judges them. A new
kind of source is one function here and its entry in OPENERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.expectation_scope import checks_source_rows
from headrace.config.models import Environment, FileSource, Read, Source, local_path
from headrace.errors import DataError, HeadraceError, one_line
from headrace.expectations import verdict
from headrace.io.delta.delta_table import table_of
from headrace.io.sources.declared_schema import declared_schema
from headrace.io.sources.file_source import inferred_schema, open_files
from headrace.io.sources.kafka_source import open_kafka
from headrace.io.sources.rate_source import open_rate
from headrace.io.watermarks import without_watermark
from headrace.spark import java_compiler
from headrace.spark.columns import require_columns
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

GLOB = r"[{}\[\]*?\\]|%(7B|7D|5B|5D|3F|5C)"  # in a path, which is URL-encoded


def open_input(
    spark: SparkSession, read: Read, environment: Environment, to_come: Mapping[str, StructType] | None = None
) -> DataFrame:
    """One input, as the transform gets it: judged, with its watermark; a table that is to come is stood in for."""
    if to_come and read.table in to_come:
        return _empty_input(spark, to_come[str(read.table)], read)
    if read.source is not None:
        source = environment.sources[read.source]
        source = source.model_copy(update={"options": {**source.options, **read.options}})
        try:
            schema = (
                inferred_schema(spark, source)
                if read.infer and isinstance(source, FileSource)
                else declared_schema(spark, read)
            )
            frame = without_watermark(OPENERS[source.kind](spark, source, schema))
            if isinstance(source, FileSource) and not _reads_names_exactly(spark, source):
                frame = _without_glob_names(frame)
        except HeadraceError:
            raise
        except Exception as error:
            raise _unreadable_source(read.source, source, error) from error
        judged = checks_source_rows(read, environment)
        frame = verdict.check_source_rows(frame, read) if judged else frame.drop(*verdict.SOURCE_COLUMNS)
        return _with_watermark(frame, read)
    table = table_of(environment, str(read.table))
    if not table.exists(spark):
        raise DataError(
            f"table {table.name!r} is not there yet",
            where=table.place,
            fix="run the step that writes it first",
        )
    changes = {"readChangeFeed": "true"} if read.changes else {}
    try:
        if read.static:
            return without_watermark(table.read(spark, read.options))
        frame = without_watermark(table.stream(spark, {**read.options, **changes}))
    except Exception as error:
        fix = "mend the input's options" if read.options else "look at the table with `headrace show`"
        raise DataError(
            f"table {table.name!r} cannot be read: {one_line(error)}", where=table.place, fix=fix
        ) from error
    return _with_watermark(frame, read)


def table_exists(spark: SparkSession, name: str, environment: Environment) -> bool:
    """Whether the table has been made in this environment."""
    return table_of(environment, name).exists(spark)


def _empty_input(spark: SparkSession, schema: StructType, read: Read) -> DataFrame:
    """No rows, of the schema that the table will have."""
    if read.static:
        return spark.createDataFrame([], schema)
    from pyspark.sql import functions as F

    rows = spark.readStream.format("rate").load()
    fields = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    if read.changes:
        added = {"_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp"}
        fields += [F.lit(None).cast(kind).alias(name) for name, kind in added.items()]
    return _with_watermark(rows.select(*fields), read)


def _with_watermark(frame: DataFrame, read: Read) -> DataFrame:
    if read.watermark is None:
        return frame
    require_columns(frame, "the watermark", [read.watermark.column])
    with configuration_errors("the watermark"):
        return frame.withWatermark(read.watermark.column, read.watermark.delay)


def _unreadable_source(name: str, source: Source, error: Exception) -> DataError:
    place = source.path if isinstance(source, FileSource) else getattr(source, "servers", source.kind)
    return DataError(
        f"source {name!r} cannot be opened: {one_line(error)}",
        where=place,
        fix="put the data there, or mend the source in the environment's file",
    )


def _reads_names_exactly(spark: SparkSession, source: FileSource) -> bool:
    """Whether a file name with glob characters is safe; see `_without_glob_names`."""
    is_ours = spark.conf.get("spark.hadoop.fs.file.impl", "") == java_compiler.LOCAL_FILES
    recursive = str(source.options.get("recursiveFileLookup", "")).lower() == "true"  # lists each file once
    return recursive or (is_ours and bool(local_path(source.path)))


def _without_glob_names(frame: DataFrame) -> DataFrame:
    """Fail on rows of a file like `report[1].json`: Spark repeats the other files of its batch (4.1.0, 4.2.0)."""
    from pyspark.sql import functions as F

    position = F.col(verdict.POSITION)
    message = F.concat(
        F.lit("Spark would repeat rows, because a file's path contains one of the characters {}[]*?\\: "),
        position,
        F.lit("; set recursiveFileLookup: true in the source's options (a new name is too late for this batch)"),
    )
    return frame.where(F.when(position.rlike(GLOB), F.raise_error(message)).otherwise(True))


OPENERS: dict[str, Callable[[SparkSession, Any, StructType | None], DataFrame]] = {
    "files": open_files,
    "kafka": open_kafka,
    "rate": open_rate,
}
