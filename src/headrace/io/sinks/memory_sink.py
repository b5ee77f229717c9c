"""Keep rows in memory, as a temporary view that has the query's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def open_stream(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    """Return Spark's memory sink."""
    return frame.writeStream.format("memory")
