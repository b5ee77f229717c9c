"""Where a step's rows go: Spark's own sink where one suffices, else the exactly-once batch writer.

A new kind of sink is one function here and its entry in STREAMS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Sink, Step
from headrace.errors import ConfigurationError
from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import table_of
from headrace.io.sinks import batch_writer, console_sink, kafka_sink, quarantine
from headrace.io.sinks.quarantine import quarantine_schema
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

EVOLVES = "spark.databricks.delta.schema.autoMerge.enabled"


def create_tables(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    schema: StructType,
    *,
    judged: bool,
    only_needed: bool = False,
) -> None:
    """Makes the tables that the step writes and that are not there; only those that its first batch needs, if so said.

    Most tables are made by their first batch: to make them before costs half a second each (Delta 4.4.0).
    """
    for sink in step.writes:
        # An overwriting first batch would not ask for the table's changes to be kept; a merge's does.
        needed = sink.cluster_by or (step.rewrites(sink) and sink.mode != "upsert")
        if sink.table and (needed or not only_needed):
            table_of(environment, sink.table).make(
                spark,
                schema,
                partition_by=sink.partition_by,
                cluster_by=sink.cluster_by,
                changes=step.rewrites(sink),
            )
    quarantined = quarantine.quarantine_table(step, environment)
    if judged and quarantined is not None:
        quarantined.make(spark, quarantine_schema())


def open_sink(
    frame: DataFrame, step: Step, environment: Environment, write: batch_writer.BatchWriter, *, judged: bool
) -> DataStreamWriter:
    """Spark's own sink where it writes the step by itself, else the batch writer."""
    if not uses_spark_sink(step, environment, judged=judged):
        return frame.writeStream.foreachBatch(write)
    (sink,) = step.writes
    writer = STREAMS[sink.kind](frame, sink, environment)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return writer.options(**{key: str(value) for key, value in sink.options.items()})


def start(writer: DataStreamWriter, step: Step, environment: Environment, *, native: bool) -> StreamingQuery:
    """Starts the query; a table known by a catalog's name is written under that name."""
    table = table_of(environment, step.writes[0].table) if native and step.writes[0].table else None
    return writer.start() if table is None or table.by_path else writer.toTable(table.place)


def require_target_columns(rows: DataFrame, step: Step, sink: Sink, environment: Environment) -> None:
    """An upsert into a table that lacks some of the columns would leave them out without a word (Delta 4.4.0)."""
    spark = rows.sparkSession
    if sink.mode != "upsert" or step.output == "complete" or str(spark.conf.get(EVOLVES, None)).lower() == "true":
        return
    table = table_of(environment, str(sink.table))
    if not table.exists(spark):
        return
    there = {name.lower() for name in table.read(spark).columns}
    lost = [field for field in rows.schema.fields if field.name.lower() not in there]
    if lost:
        columns = ", ".join(f"{quote_name(field.name)} {field.dataType.simpleString()}" for field in lost)
        raise ConfigurationError(
            f"table {table.name!r} has no column {lost[0].name!r}, which the step's rows have",
            fix=f"add what it lacks: ALTER TABLE {table.in_sql} ADD COLUMNS ({columns})",
        )


def require_change_columns(frame: DataFrame, step: Step) -> None:
    """Raise ConfigurationError if the transform drops what tells an inserted row from an updated or deleted one.

    An aggregation of changes is no copy of the table, and does not need them.
    """
    in_jvm: Any = getattr(frame, "_jdf", None)
    if in_jvm is not None and "Aggregate [" in in_jvm.queryExecution().analyzed().toString():
        return
    missing = [name for name in (delta_merge.CHANGE_TYPE, delta_merge.COMMIT_VERSION) if name not in frame.columns]
    if missing:
        raise ConfigurationError(
            f"the step copies changes into an upsert, but its transform drops {missing[0]}",
            fix=f"keep {delta_merge.CHANGE_TYPE} and {delta_merge.COMMIT_VERSION} in the transform; neither is written",
        )


def uses_spark_sink(step: Step, environment: Environment, *, judged: bool) -> bool:
    """Whether Spark's own sink writes the step: where it can, and to a table only where it is not the slower one."""
    first, *others = step.writes
    if others or judged or transforms_batches(step):
        return False
    if first.kind != "table":
        return True
    quick = table_of(environment, str(first.table)).by_path and step.output == "append"
    return first.mode == "append" and not quick


def transforms_batches(step: Step) -> bool:
    """Whether the transform runs on each batch's good rows, instead of on the stream."""
    return step.row_wise and step.transform is not None


def _table(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    place = table_of(environment, str(sink.table))
    writer = frame.writeStream.format("delta")
    return writer.option("path", place.place) if place.by_path else writer


def _topic(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    return (
        kafka_sink.as_records(frame).writeStream.format("kafka").options(**kafka_sink.writer_options(sink, environment))
    )


def _folder(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    return frame.writeStream.format(sink.format or "parquet").option("path", environment.folders[str(sink.folder)])


def _console(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    return frame.writeStream.foreachBatch(console_sink.print_batch)


def _memory(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    return frame.writeStream.format("memory")


STREAMS: dict[str, Callable[[DataFrame, Sink, Environment], DataStreamWriter]] = {
    "table": _table,
    "topic": _topic,
    "folder": _folder,
    "console": _console,
    "memory": _memory,
}
