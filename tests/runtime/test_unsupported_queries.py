"""Queries that Spark cannot stream."""

from __future__ import annotations

import pytest

from headrace.errors import ConfigurationError


def unmatched(rows, names):
    return names.join(rows, "value", "left_anti")


def added(rows, names):
    return rows.select("value").union(names.select("value"))


def outer(rows, others):
    return rows.join(others.select("value"), "value", "left")


def total(rows):
    return rows.groupBy("value").count()


@pytest.mark.parametrize(
    ("transform", "more", "reason"),
    [
        (
            "unmatched",
            "names: {table: names, static: true}",
            "LeftAnti joins with a streaming DataFrame/Dataset on the",
        ),
        ("added", "names: {table: names, static: true}", "Union between streaming and batch DataFrames/Datasets is"),
        ("outer", "others: {source: lines}", "Stream-stream LeftOuter join between two streaming DataFrame/Datasets"),
        ("total", "", "Invalid streaming output mode: append. This output mode is not supported for streaming aggre"),
    ],
)
def test_message_has_sparks_own_reason(flow, transform, more, reason):
    flow.source("lines", "text")
    flow.spark.createDataFrame([("a", "Ada")], "value STRING, name STRING").write.format("delta").save(
        str(flow.directory / "tables" / "names")
    )
    flow.steps(f"""
        names: {{layer: bronze, reads: {{names: {{source: lines}}}}, writes: {{table: names}}}}
        {transform}:
          layer: bronze
          reads: {{rows: {{source: lines}}{", " if more else ""}{more}}}
          transform: {__name__}:{transform}
          writes: {{table: t_{transform}}}
        """)
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    messages = [problem.message for problem in error.value.problems]
    assert any(message.startswith(f"Spark cannot stream this query: {reason}") for message in messages), messages
