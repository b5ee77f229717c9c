"""The registry of sink kinds: how each one writes a stream, and how it writes one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.config.models import Environment, Sink, Step
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks import console_sink, folder_sink, kafka_sink, memory_sink, table_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class SinkKind:
    """One kind of sink; without `write_batch` it can only be a step's only sink, written by Spark itself."""

    open_stream: Callable[[DataFrame, Sink, Environment], DataStreamWriter]
    write_batch: Callable[[DataFrame, Sink, Step, Environment, TransactionId], None] | None = None


SINKS = {
    "table": SinkKind(table_sink.open_stream, table_sink.write_batch),
    "topic": SinkKind(kafka_sink.open_stream, kafka_sink.write_batch),
    "folder": SinkKind(folder_sink.open_stream),
    "console": SinkKind(console_sink.open_stream, console_sink.write_batch),
    "memory": SinkKind(memory_sink.open_stream),
}
