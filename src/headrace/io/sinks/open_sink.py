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
    """Return the writer of the step's query. `has_verdicts`: the step's rows are checked."""
    if not uses_spark_sink(step, environment, has_verdicts=has_verdicts):
        return frame.writeStream.foreachBatch(batch_writer)
    (sink,) = step.writes
    writer: DataStreamWriter = import_module(SINKS[sink.kind].implementation).open_stream(frame, sink, environment)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return writer.options(**{key: str(value) for key, value in sink.options.items()})


def start(writer: DataStreamWriter, step: Step, environment: Environment, *, spark_sink: bool) -> StreamingQuery:
    """Start the query. `spark_sink`: the writer is Spark's own sink, not the batch writer (`uses_spark_sink`).

    Delta's own sink gets the name of a table in a catalog here, because only `toTable` accepts such a name.
    """
    table_name = step.writes[0].table if spark_sink else None
    table = table_of(environment, table_name) if table_name else None
    return writer.start() if table is None or table.by_path else writer.toTable(table.location)


def uses_spark_sink(step: Step, environment: Environment, *, has_verdicts: bool) -> bool:
    """Return whether Spark's own sink writes the step's rows; otherwise the batch writer does.

    Spark's sink suffices for one sink, unchecked rows and no row-wise transform; for a table, the mode must be append.
    Nevertheless the batch writer appends to tables at a path, because it is faster (see `delta_append`).
    """
    first, *others = step.writes
    if others or has_verdicts or step.transforms_batches:
        return False
    if first.kind != "table":
        return True
    is_fast_append = table_of(environment, str(first.table)).by_path and step.output == "append"
    return first.mode == "append" and not is_fast_append
