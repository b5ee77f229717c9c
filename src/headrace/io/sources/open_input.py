"""Opens a step's inputs: outside sources and tables, as DataFrames.

Rows of an outside source come with three columns about how they arrived, from which `quality` judges them. A new
kind of source is one function here and its entry in OPENERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.expectation_scope import is_judged
from headrace.config.models import Environment, FileSource, KafkaSource, RateSource, Read, Source, on_disk
from headrace.config.spark_options import encoding_of
from headrace.errors import ConfigurationError, DataError, HeadraceError, in_a_line
from headrace.expectations import verdict
from headrace.expectations.row_checks import require_columns, told
from headrace.graph.resolve import resolve
from headrace.io import kafka_secrets
from headrace.io.delta.delta_table import table_of
from headrace.io.sources.decoding import decode, with_valid_text
from headrace.io.sources.file_source import inferred, open_files
from headrace.io.sources.json_records import parse_json
from headrace.io.watermarks import without_watermark
from headrace.spark import java_compiler

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

GLOB = r"[{}\[\]*?\\]|%(7B|7D|5B|5D|3F|5C)"  # in a path, which is URL-encoded


def open_input(
    spark: SparkSession, read: Read, environment: Environment, to_come: Mapping[str, StructType] | None = None
) -> DataFrame:
    """One input, as the transform gets it: judged, with its watermark; a table that is to come is stood in for."""
    if to_come and read.table in to_come:
        return _stand_in(spark, to_come[str(read.table)], read)
    if read.source is not None:
        source = environment.sources[read.source]
        source = source.model_copy(update={"options": {**source.options, **read.options}})
        try:
            schema = (
                inferred(spark, source) if read.infer and isinstance(source, FileSource) else schema_of(spark, read)
            )
            frame = without_watermark(OPENERS[source.kind](spark, source, schema))
            if isinstance(source, FileSource) and not _reads_names_exactly(spark, source):
                frame = _without_glob_names(frame)
        except HeadraceError:
            raise
        except Exception as error:
            raise _unreadable(read.source, source, error) from error
        judged = is_judged(read, environment)
        frame = verdict.judge_arrivals(frame, read) if judged else frame.drop(*verdict.ARRIVAL)
        return _late_by(frame, read)
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
            f"table {table.name!r} cannot be read: {in_a_line(error)}", where=table.place, fix=fix
        ) from error
    return _late_by(frame, read)


def table_exists(spark: SparkSession, name: str, environment: Environment) -> bool:
    """Whether the table has been made in this environment."""
    return table_of(environment, name).exists(spark)


def _stand_in(spark: SparkSession, schema: StructType, read: Read) -> DataFrame:
    """No rows, of the schema that the table will have."""
    if read.static:
        return spark.createDataFrame([], schema)
    from pyspark.sql import functions as F

    rows = spark.readStream.format("rate").load()
    fields = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    if read.changes:
        added = {"_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp"}
        fields += [F.lit(None).cast(kind).alias(name) for name, kind in added.items()]
    return _late_by(rows.select(*fields), read)


def _late_by(frame: DataFrame, read: Read) -> DataFrame:
    if read.watermark is None:
        return frame
    require_columns(frame, "the watermark", [read.watermark.column])
    with told("the watermark"):
        return frame.withWatermark(read.watermark.column, read.watermark.delay)


def _unreadable(name: str, source: Source, error: Exception) -> DataError:
    place = source.path if isinstance(source, FileSource) else getattr(source, "servers", source.kind)
    return DataError(
        f"source {name!r} cannot be opened: {in_a_line(error)}",
        where=place,
        fix="put the data there, or mend the source in the environment's file",
    )


def _reads_names_exactly(spark: SparkSession, source: FileSource) -> bool:
    """Whether a file name with glob characters is safe; see `_without_glob_names`."""
    is_ours = spark.conf.get("spark.hadoop.fs.file.impl", "") == java_compiler.LOCAL_FILES
    recursive = str(source.options.get("recursiveFileLookup", "")).lower() == "true"  # lists each file once
    return recursive or (is_ours and bool(on_disk(source.path)))


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


def schema_of(spark: SparkSession, read: Read) -> StructType | None:
    """The declared schema: an import path or a DDL string."""
    from pyspark.sql.types import StructType

    if read.schema_ is None:
        return None
    if read.schema_path is not None:
        schema = resolve(read.schema_path)
        if not isinstance(schema, StructType):
            raise ConfigurationError(
                f"{read.schema_} is a {type(schema).__name__}, not a StructType",
                fix="name a StructType, or write DDL",
            )
        return schema
    try:
        return parsed(read.schema_)
    except Exception as error:
        raise ConfigurationError(
            f"schema {read.schema_!r} is not DDL: {in_a_line(error)}",
            fix="write it like 'id STRING, n INT'",
        ) from error


def parsed(ddl: str) -> StructType:
    """The schema that the DDL describes."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    schema = _parse_datatype_string(ddl)
    assert isinstance(schema, StructType)
    return schema


def _kafka(spark: SparkSession, source: KafkaSource, schema: StructType | None) -> DataFrame:
    from pyspark.sql import functions as F

    topics = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": source.servers,
        "startingOffsets": source.start,
        **topics,
        **kafka_secrets.kafka_options(source.security),
        **source.options,
    }
    records = spark.readStream.format("kafka").options(**options).load()
    position = F.concat_ws("-", "topic", "partition", "offset").alias(verdict.POSITION)
    if source.format == "bytes":
        return records.select("value", F.base64("value").alias(verdict.RAW), position)
    lines = decode(records.select("value", position), "value", encoding_of(source.options))
    if source.format == "text" or schema is None:
        return with_valid_text(lines, "value", verdict.RAW)
    return with_valid_text(parse_json(lines, schema, source.options), verdict.RAW)


def _rate(spark: SparkSession, source: RateSource, schema: StructType | None) -> DataFrame:
    return spark.readStream.format("rate").options(rowsPerSecond=source.rows_per_second, **source.options).load()


OPENERS: dict[str, Callable[[SparkSession, Any, StructType | None], DataFrame]] = {
    "files": open_files,
    "kafka": _kafka,
    "rate": _rate,
}
