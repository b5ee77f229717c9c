"""Write Delta tables: through Delta's own streaming sink, or batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Sink, Step
from headrace.errors import ConfigurationError
from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks import target_table
from headrace.io.sinks.quarantine import quarantine_schema, quarantine_table
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType


def open_stream(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    """Return Delta's own streaming sink. For a table in a catalog, `open_sink.start` sets the table's name."""
    table = table_of(environment, str(sink.table))
    writer = frame.writeStream.format("delta")
    return writer.option("path", table.location) if table.by_path else writer


def write_batch(rows: DataFrame, sink: Sink, step: Step, environment: Environment, transaction: TransactionId) -> None:
    """Append a batch to the table, replace the table's rows by the batch, or merge the batch into the table."""
    table = table_of(environment, str(sink.table))
    mode = "replace" if step.output == "complete" else sink.mode  # with output `complete`, a batch is the whole result
    if mode == "upsert":
        delta_merge.upsert(
            rows,
            table,
            keys=sink.keys,
            sequence=str(sink.sequence),
            partition_by=sink.partition_by,
            transaction=transaction,
            # In these two cases a row of a later batch is newer even if its sequence is equal: it is a later result of
            # the same group, or a change of a later commit.
            ties_win=step.output == "update" or step.copies_changes,
        )
        return
    if step.copies_changes:
        rows = rows.drop(*delta_merge.CHANGE_COLUMNS)
    save_mode = "append" if mode == "append" else "overwrite"
    transaction.write(rows, table, mode=save_mode, partition_by=sink.partition_by, options=sink.options)


def create_tables(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    schema: StructType,
    *,
    with_quarantine: bool,
    only_needed: bool = False,
) -> None:
    """Create the step's tables that do not exist; with `only_needed`, only those that the first batch cannot create.

    The first batch creates most tables, because creating a table beforehand takes half a second (Delta 4.4.0).
    With `with_quarantine`, also create the quarantine table, even with `only_needed`. `schema` is that of the step's
    rows.
    """
    for sink in step.writes:
        # A batch cannot create a clustered table. A batch that replaces the rows does not enable the change data feed
        # of the table that it creates; a batch that is merged does (`delta_merge.upsert`).
        is_needed = sink.cluster_by or (step.rewrites(sink) and sink.mode != "upsert")
        if sink.table and (is_needed or not only_needed):
            table_of(environment, sink.table).create(
                spark,
                schema,
                partition_by=sink.partition_by,
                cluster_by=sink.cluster_by,
                change_data_feed=step.rewrites(sink),
            )
    quarantine = quarantine_table(step, environment)
    if with_quarantine and quarantine is not None:
        quarantine.create(spark, quarantine_schema())


def add_columns(spark: SparkSession, step: Step, environment: Environment, schema: StructType) -> None:
    """Add the columns that the step's rows have, and that its existing tables with `evolve: add` lack.

    The step's query must not be running, because its writes would conflict with this change. `schema` is that of the
    step's rows.
    """
    for sink in step.writes:
        added = target_table.added_columns(spark, schema, sink, environment)
        if added:
            with configuration_errors(f"evolve: add of table {sink.table!r}"):
                table_of(environment, str(sink.table)).add_columns(spark, added)


def require_change_columns(frame: DataFrame, step: Step) -> None:
    """Raise ConfigurationError if a transform drops the columns that distinguish inserts, updates and deletes.

    An aggregation of changes does not need them, because its result is not a copy of the table.
    """
    frame_in_jvm: Any = getattr(frame, "_jdf", None)
    if frame_in_jvm is not None and "Aggregate [" in frame_in_jvm.queryExecution().analyzed().toString():
        return
    required = (delta_merge.CHANGE_TYPE, delta_merge.COMMIT_VERSION)
    missing = [name for name in required if name not in frame.columns]
    if missing:
        raise ConfigurationError(
            f"the step copies changes into an upsert, but its transform drops {missing[0]}",
            fix=f"keep {' and '.join(required)} in the transform's result; the sink does not write them",
        )
