"""Watermarks are set by the configuration only, never inherited through a table; growing state causes warnings."""

from __future__ import annotations

import os
import re
import signal

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Step
from headrace.errors import ConfigurationError
from headrace.io.watermarks import METADATA_KEY, missing_watermark, without_watermark_marks
from headrace.runtime import runner

SCHEMA = 'schema: "id STRING, at TIMESTAMP"'
LAND = f"""
land:
  layer: bronze
  reads: {{rows: {{source: rows, {SCHEMA}, watermark: {{column: at, delay: 1 minute}}}}}}
  transform: headrace.transforms.bronze:deduplicate
  with: {{keys: [id]}}
  writes: {{table: landed}}
"""
COUNT = """
count:
  layer: gold
  reads: {{rows: {{table: landed{watermark}}}}}
  transform: headrace.transforms.gold:aggregate_windows
  with: {{time: at, window: 1 minute, aggregates: {{rows: {{count: "*"}}}}}}
  writes: {{table: counted}}
"""
MARKED = {METADATA_KEY: 60_000}


def feed(flow, *minutes):
    flow.source("rows")
    flow.feed("rows", *({"id": f"r{minute}", "at": f"2026-01-01T12:{minute:02}:00Z"} for minute in minutes))


def minutes(flow):
    return sorted((row["window_start"].minute, row["rows"]) for row in flow.read("counted"))


def marked_columns(schema):
    return re.findall(METADATA_KEY, schema.json())


def test_watermark_is_not_inherited_through_a_table_that_a_step_writes(flow):
    feed(flow, 0, 1, 30)
    flow.steps(LAND)
    flow.run()
    table = flow.spark.read.format("delta").load(str(flow.directory / "tables" / "landed"))
    assert marked_columns(table.schema) == []
    flow.steps(LAND + COUNT.format(watermark=""))
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    (problem,) = error.value.problems
    assert problem.fix == "add to reads.rows: watermark: {column: at, delay: 10 minutes}"
    assert problem.where == "conf/pipelines/flow.yml:13"


def test_table_with_an_inherited_watermark_is_read_as_one_without(flow):
    """With the same table, stock Spark starts this query and never emits a row."""
    path = str(flow.directory / "tables" / "landed")
    feed(flow, 0, 1, 30)
    rows = flow.spark.readStream.schema("id STRING, at TIMESTAMP").json(str(flow.directory / "data" / "rows"))
    stock = rows.withWatermark("at", "1 minute").writeStream.format("delta").trigger(availableNow=True)
    stock.option("checkpointLocation", str(flow.directory / "stock")).start(path).awaitTermination()
    table = flow.spark.read.format("delta").load(path)
    assert marked_columns(table.schema) == [METADATA_KEY]  # as written by stock Spark

    flow.steps(LAND + COUNT.format(watermark=""))
    with pytest.raises(ConfigurationError, match="without watermark"):
        flow.run("count")
    flow.steps(LAND + COUNT.format(watermark=", watermark: {column: at, delay: 1 minute}"))
    flow.run("count")
    by_minute = {row["minute"]: row["count"] for row in table.groupBy(F.minute("at").alias("minute")).count().collect()}
    assert minutes(flow) == sorted((minute, rows) for minute, rows in by_minute.items() if minute < 29)


def test_other_metadata_is_kept(spark):
    rows = spark.createDataFrame([("a", None)], "id STRING, at TIMESTAMP")
    rows = rows.select(
        F.col("id").alias("id", metadata={"comment": "the key"}),
        F.col("at").alias("at", metadata={**MARKED, "comment": "event time"}),
        F.struct(F.col("at").alias("at", metadata={**MARKED, "comment": "inside"})).alias("nested"),
        F.array(F.struct(F.col("at").alias("at", metadata=MARKED))).alias("list"),
        F.create_map("id", F.struct(F.col("at").alias("at", metadata=MARKED))).alias("map"),
        F.window(F.lit("2026-01-01").cast("timestamp"), "1 minute").alias("window"),
    )
    assert len(marked_columns(rows.schema)) == 4
    clean = without_watermark_marks(rows)
    assert marked_columns(clean.schema) == []
    assert clean.schema["id"].metadata == {"comment": "the key"}
    assert clean.schema["at"].metadata == {"comment": "event time"}
    assert clean.schema["nested"].dataType["at"].metadata == {"comment": "inside"}
    assert clean.schema["window"].metadata == rows.schema["window"].metadata != {}
    assert clean.collect() == rows.collect()
    assert without_watermark_marks(clean) is clean


def with_nested_time(rows):
    return rows.select("id", F.struct("at").alias("event"), F.window("at", "1 minute").alias("window"))


def test_watermark_of_a_nested_column_is_not_written_either(flow):
    feed(flow, 0)
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, {SCHEMA}, watermark: {{column: at, delay: 1 minute}}}}}}
          transform: {__name__}:with_nested_time
          row_wise: true
          writes: {{table: landed}}
        """)
    (prepared,) = flow.rehearse()
    assert marked_columns(prepared.schema) == []
    flow.run()
    table = flow.spark.read.format("delta").load(str(flow.directory / "tables" / "landed"))
    assert marked_columns(table.schema) == []
    # The metadata of a window is kept: window_time needs it.
    assert [str(row["t"]) for row in table.select(F.window_time("window").alias("t")).collect()] != []


def by_id(rows):
    return rows.groupBy("id").count()


def first_of_id(rows):
    return rows.dropDuplicates(["id"])


def by_time_and_id(rows):
    return rows.groupBy("at", "id").count()


def total(rows):
    return rows.groupBy().count()


def joined(rows, others):
    return rows.join(others.select("id"), "id")


@pytest.mark.parametrize(
    ("transform", "output", "warning"),
    [
        ("by_id", "complete", "output: complete keeps every group"),
        ("by_id", "update", "an aggregation that does not group by the watermark's column keeps every group"),
        ("by_time_and_id", "update", None),
        ("total", "complete", None),  # one row
        ("first_of_id", "append", "dropDuplicates without the watermark's column among its columns keeps every key"),
    ],
)
def test_state_that_grows_for_ever_causes_a_warning(flow, transform, output, warning):
    feed(flow, 0)
    flow.source("raw", "text")
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, {SCHEMA}}}}}, writes: {{table: landed}}}}
        count:
          layer: gold
          reads: {{rows: {{table: landed, watermark: {{column: at, delay: 1 minute}}}}}}
          transform: {__name__}:{transform}
          output: {output}
          writes: {{table: counted, mode: {"replace" if output == "update" else "append"}}}
        """)
    expected = [] if warning is None else [f"step 'count': the state grows for ever: {warning}"]
    assert runner.check_pipelines(flow.spark, flow.bundle()) == expected


def test_warnings_are_recorded_when_a_run_starts(flow):
    feed(flow, 0)
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, {SCHEMA}}}}}, writes: {{table: landed}}}}
        join:
          layer: silver
          reads: {{rows: {{table: landed}}, others: {{table: landed}}}}
          transform: {__name__}:joined
          writes: {{table: joined}}
        """)
    run = flow.run()
    warnings = [(event.step, event.message) for event in run.events if event.what == "warning"]
    assert warnings == [("join", "the state grows for ever: a join of two streams without a watermark keeps every row")]


def test_fix_names_the_column_of_the_window_and_each_input_without_a_watermark(spark):
    rows = spark.readStream.format("rate").load()
    rows = rows.select("value", F.col("timestamp").alias("made_at"), F.col("timestamp").alias("at"))
    step = Step(
        name="s",
        layer="gold",
        reads={"left": {"table": "l"}, "right": {"table": "r"}, "fixed": {"table": "f", "static": True}},
        writes=[{"table": "t"}],
    )
    plan = rows.groupBy(F.window("at", "1 minute")).count()._jdf.queryExecution().analyzed().toString()
    session = rows.groupBy(F.session_window("at", "1 minute"), "value").count()
    inputs = {"left": rows, "right": rows.select("value"), "fixed": spark.range(1)}
    for text in (plan, session._jdf.queryExecution().analyzed().toString()):
        assert missing_watermark(step, inputs, text) == (
            "add to reads.left: watermark: {column: at, delay: 10 minutes}; "
            "give reads.right a column of type TIMESTAMP and a watermark on it"
        )
    assert "made_at" in missing_watermark(step, inputs, "")
    assert "column: at" in missing_watermark(step.model_copy(update={"with_": {"time": "at"}}), inputs, "")


def test_fix_for_grouping_without_the_watermarks_column_names_that_column(flow):
    feed(flow, 0)
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, {SCHEMA}}}}}, writes: {{table: landed}}}}
        count:
          layer: gold
          reads: {{rows: {{table: landed, watermark: {{column: at, delay: 1 minute}}}}}}
          transform: {__name__}:by_id
          writes: {{table: counted}}
        """)
    with pytest.raises(ConfigurationError, match="without watermark") as error:
        flow.rehearse()
    assert error.value.problems[0].fix.startswith("group or join by the watermark's column ('at')")


# ── State that expires ────────────────────────────────────────────────────────────────────────────────

DEDUPLICATED = LAND.replace("delay: 1 minute", "delay: 10 minutes")


def feed_at(flow, **times):
    flow.feed("rows", *({"id": name, "at": f"2026-01-01T{time}:00Z"} for name, time in times.items()))


def landed(flow):
    return sorted((row["id"], f"{row['at']:%H:%M}") for row in flow.read("landed"))


def by_stock_spark(flow, output):
    """Run the same query in plain PySpark, with its own defaults. Return its rows."""
    rows = flow.spark.readStream.schema("id STRING, at TIMESTAMP").json(str(flow.directory / "data" / "rows"))
    rows = rows.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["id"])
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{output}-checkpoint").start(str(output)).awaitTermination()
    return sorted((row["id"], f"{row['at']:%H:%M}") for row in flow.spark.read.parquet(str(output)).collect())


def test_keys_expire_between_two_runs(flow):
    flow.source("rows")
    flow.steps(DEDUPLICATED)
    stock = flow.directory / "stock"
    feed_at(flow, x="00:00", y="01:40")
    flow.run()
    by_stock_spark(flow, stock)
    feed_at(flow, x="01:41", y="01:45")
    flow.run()
    assert landed(flow) == by_stock_spark(flow, stock) == [("x", "00:00"), ("x", "01:41"), ("y", "01:40")]


def test_keys_expire_in_a_run_that_follows(flow):
    """The second file arrives after a round without new rows."""
    flow.source("rows")
    flow.steps(DEDUPLICATED)
    feed_at(flow, x="00:00", y="01:40")
    batches = []

    def watch(event):
        if event.what != "batch":
            return
        batches.append(event.rows)
        if batches[-1] == 0 and sum(batches) == 2:
            feed_at(flow, x="01:41", y="01:45")
        elif batches[-1] and sum(batches) == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert landed(flow) == [("x", "00:00"), ("x", "01:41"), ("y", "01:40")]
