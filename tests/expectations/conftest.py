"""Rows for the tests of expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Rows that differ in one column each: (id, n, x, day, name)."""
    table = [
        ("ab", 1, 0.5, "2026-01-01", "eve"),
        ("a\nb", 5, float("nan"), "2026-12-31", None),
        ("ab\n", 6, None, None, "eve"),
        ("xab", 0, 9.9, "2025-12-31", "eve"),
        (None, None, None, None, None),
    ]
    flat = spark.createDataFrame(table, "id STRING, n INT, x DOUBLE, day STRING, name STRING")
    return flat.select("id", "n", "x", F.to_date("day").alias("day"), F.struct("name").alias("who"))
