"""Let a step continue in a table that it has not written: adopt the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.checkpoints.generations import AcceptedTable, write_generation
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.config.models import Bundle
from headrace.errors import DataError
from headrace.graph import order
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import table_state
from headrace.runtime.step_checkpoint import open_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def adopt_tables(spark: SparkSession, bundle: Bundle, pipeline: str, name: str) -> dict[str, AcceptedTable]:
    """Accept the existing tables of a step, with the rows that other writers left in them. Return the tables by
    name.

    Raise GuardError if the step is running, and DataError if none of its tables exists.
    """
    (step,) = order.select_steps(bundle, pipeline, [name])
    lock = Lock(spark, step_directory(bundle.environment, pipeline, name), name)
    try:
        checkpoint = open_checkpoint(bundle, pipeline, name, spark)
        generation, adopted = checkpoint.generation, {}
        for table_name in step.tables_written:
            state = table_state(spark, table_of(bundle.environment, table_name))
            if state is not None:
                adopted[table_name] = AcceptedTable(
                    state.id, "adopted", state.version, sorted(state.transactions or ())
                )
                generation = generation.with_table(table_name, adopted[table_name])
        if not adopted:
            where = bundle.where(pipeline, "steps", name)
            raise DataError(f"step {name!r} has no table to adopt", where=where, fix="just run the step")
        write_generation(checkpoint.files, generation)
        return adopted
    finally:
        lock.release()
