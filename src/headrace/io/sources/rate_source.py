"""Open Spark's rate source, which generates rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import RateSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def open_stream(spark: SparkSession, source: RateSource, schema: StructType | None) -> DataFrame:
    """Open a stream of generated rows. `schema` is ignored, because the columns are always `timestamp` and `value`."""
    options = {"rowsPerSecond": source.rows_per_second, **source.options}
    return spark.readStream.format("rate").options(**options).load()
