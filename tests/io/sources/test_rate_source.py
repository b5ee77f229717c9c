"""Spark's rate source."""

from __future__ import annotations

from headrace.config.models import RateSource, Read
from headrace.io.sources import open_input
from inputs import environment


def test_rate_source_generates_numbered_rows(spark):
    rows = open_input.open_input(spark, Read(source="it"), environment(it=RateSource(kind="rate", rows_per_second=5)))
    assert rows.isStreaming
    assert rows.columns == ["timestamp", "value"]
    assert _rows_per_second(rows) == "5"
    options = {"rowsPerSecond": 7}
    source = RateSource(kind="rate", rows_per_second=5, options=options)
    assert _rows_per_second(open_input.open_input(spark, Read(source="it"), environment(it=source))) == "7"


def _rows_per_second(rows):
    return rows._jdf.queryExecution().analyzed().collectLeaves().head().extraOptions().get("rowsPerSecond")
