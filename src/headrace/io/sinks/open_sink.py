"""Open a step's sink: Spark's own streaming sink where that suffices, otherwise the exactly-once batch writer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headrace.config.kinds.sinks import SINKS
from headrace.config.models import Environment, Step
from headrace.io.delta.delta_table import table_of
from headrace.io.sinks.batch_writer import BatchWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def open_sink(
    frame: DataFrame, step: Step, environment: Environment, batch_writer: BatchWriter, *, has_verdicts: bool
) -> DataStreamWriter:
    """Return the writer of the step's query. `has_verdicts` is whether its rows are checked."""
    if not uses_spark_sink(step, environment, has_verdicts=has_verdicts):
        return frame.writeStream.foreachBatch(batch_writer)
    (sink,) = step.writes
    writer: DataStreamWriter = import_module(SINKS[sink.kind].implementation).open_stream(frame, sink, environment)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return writer.options(**{key: str(value) for key, value in sink.options.items()})


def start(writer: DataStreamWriter, step: Step, environment: Environment, *, spark_sink: bool) -> StreamingQuery:
    """Start the query. `spark_sink` is whether its writer is Spark's own sink (`uses_spark_sink`).

    Delta's own sink gets the name of a table in a catalog here, because only `toTable` accepts it.
    """
    table = table_of(environment, step.writes[0].table) if spark_sink and step.writes[0].table else None
    return writer.start() if table is None or table.by_path else writer.toTable(table.location)


def uses_spark_sink(step: Step, environment: Environment, *, has_verdicts: bool) -> bool:
    """Return whether Spark's own sink writes the step, not the batch writer.

    Spark's sink suffices for one sink, unchecked rows and no row-wise transform; for a table, also only in mode append.
    But the batch writer is used if it is faster: it appends faster to a table at a path (see `delta_append`).
    """
    first, *others = step.writes
    if others or has_verdicts or step.transforms_batches:
        return False
    if first.kind != "table":
        return True
    is_fast_append = table_of(environment, str(first.table)).by_path and step.output == "append"
    return first.mode == "append" and not is_fast_append
