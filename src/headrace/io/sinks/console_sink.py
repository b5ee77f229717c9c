"""Print batches on the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import Environment, Sink, Step
from headrace.io.delta.transaction_id import TransactionId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def open_stream(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    """Return a writer that prints each batch."""
    return frame.writeStream.foreachBatch(print_batch)


def write_batch(rows: DataFrame, sink: Sink, step: Step, environment: Environment, transaction: TransactionId) -> None:
    """Print a batch."""
    print_batch(rows, transaction.batch)


def print_batch(rows: DataFrame, batch: int) -> None:
    """Print a batch from Python. Spark's console sink would print to the log file, where all output of the JVM goes."""
    print(f"batch {batch}")
    rows.show(truncate=False)
