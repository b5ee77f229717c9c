"""Write files into a folder, through Spark's own streaming sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def open_stream(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    """Return Spark's file sink for the folder."""
    return frame.writeStream.format(sink.format or "parquet").option("path", environment.folders[str(sink.folder)])
