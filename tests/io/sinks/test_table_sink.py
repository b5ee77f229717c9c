"""Tables as sinks: created as needed, replaced by a whole result, and copied from the changes of other tables."""

from __future__ import annotations

from collections import Counter

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from headrace.config.models import Environment, LocalEngine, Sink, Step, Tables
from headrace.errors import ConfigurationError, StepError
from headrace.io.sinks import table_sink

ROW = "id STRING, n INT, at TIMESTAMP"


def row(name, n=1):
    return {"id": name, "n": n, "at": "1970-01-01T00:01:00Z"}


def test_tables_are_created_only_as_far_as_needed(spark, tmp_path):
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root=str(tmp_path)), checkpoints="none"
    )
    writes = [Sink(table="clustered", cluster_by=["n"]), Sink(table="plain"), Sink(console=True)]
    step = Step(name="s", layer="bronze", reads={}, writes=writes)
    schema = spark.createDataFrame([], "n INT").schema
    table_sink.create_tables(spark, step, environment, schema, with_quarantine=False, only_needed=True)
    assert {file.name for file in tmp_path.iterdir()} == {"clustered"}
    table_sink.create_tables(spark, step, environment, schema, with_quarantine=True)
    assert {file.name for file in tmp_path.iterdir()} == {"clustered", "plain", "clustered_quarantine"}
    columns = [field.name for field in DeltaTable(str(tmp_path / "clustered_quarantine")).schema().fields]
    assert columns == ["raw", "reasons", "position", "step", "batch", "quarantined_at"]


def counted(rows):
    return rows.groupBy("id").agg(F.count("*").alias("n"))


def test_complete_output_replaces_the_previous_result(flow):
    """Written by Spark's own sink, with rules, and into two tables; another step reads the changes."""
    step = "{{layer: gold, reads: {{rows: {{table: landed}}}}, transform: {0}:counted, output: complete, {1}}}"
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, schema: "{ROW}"}}}}, writes: {{table: landed}}}}
        plain: {step.format(__name__, "writes: {table: plain}")}
        checked: {step.format(__name__, "expect: [{between: {n: [1, 2]}}], writes: {table: checked}")}
        twice: {step.format(__name__, "writes: [{table: one}, {table: two}]")}
        changed:
          layer: gold
          reads: {{rows: {{table: one, changes: true}}}}
          writes: {{table: changed}}
        """)
    flow.source("rows")
    flow.feed("rows", row("a"), row("b"), row("b"))
    flow.run()
    flow.feed("rows", row("a"), row("b"))
    flow.run()
    expected = {"plain": {"a": 2, "b": 3}, "checked": {"a": 2}, "one": {"a": 2, "b": 3}, "two": {"a": 2, "b": 3}}
    assert {table: {row["id"]: row["n"] for row in flow.read(table)} for table in expected} == expected
    assert {table: len(flow.read(table)) for table in expected} == {
        table: len(rows) for table, rows in expected.items()
    }
    assert [row["raw"] for row in flow.read("checked_quarantine")] == ['{"id":"b","n":3}']
    changes = Counter((row["_change_type"], row["id"], row["n"]) for row in flow.read("changed"))
    first, second = (("a", 1), ("b", 2)), (("a", 2), ("b", 3))
    inserts = [("insert", *row) for row in (*first, *second)]
    deletes = [("delete", *row) for row in first]
    assert changes == Counter([*inserts, *deletes])


def summed(rows):
    return rows.groupBy("id").agg(F.sum("n").alias("n"), F.max("at").alias("last"))


def test_later_result_of_a_group_wins_ties(flow):
    flow.source("rows")
    flow.feed("rows", row("a", 1))
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, schema: "{ROW}"}}}}, writes: {{table: landed}}}}
        sums:
          layer: gold
          reads: {{rows: {{table: landed, watermark: {{column: at, delay: 1 hour}}}}}}
          transform: {__name__}:summed
          output: update
          writes: {{table: sums, mode: upsert, keys: [id], sequence: last}}
        """)
    flow.run()
    flow.feed("rows", row("a", 2))  # with the same time, so that the sequence does not change
    flow.run()
    assert [(row["id"], row["n"]) for row in flow.read("sums")] == [("a", 3)]


def test_upserted_table_has_the_steps_partitions(flow):
    flow.steps("""
        land:
          layer: bronze
          reads: {rows: {source: rows, schema: "id STRING, n INT, day STRING"}}
          writes: {table: landed, mode: upsert, keys: [id], sequence: n, partition_by: [day]}
        changed: {layer: silver, reads: {rows: {table: landed, changes: true}}, writes: {table: changed}}
        """)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "day": "monday"})
    flow.run()
    assert DeltaTable(str(flow.directory / "tables" / "landed")).metadata().partition_columns == ["day"]
    flow.feed("rows", {"id": "a", "n": 2, "day": "monday"})
    flow.run()
    changes = [(row["_change_type"], row["n"]) for row in flow.read("changed")]
    assert sorted(changes) == [("insert", 1), ("update_postimage", 2), ("update_preimage", 1)]


@pytest.mark.parametrize("mode", ["append", "replace", "upsert, keys: [id], sequence: n"])
@pytest.mark.parametrize("evolves", [False, True])
def test_table_that_lacks_a_column_is_an_error(flow, evolves, mode):
    """A merge would drop the column silently, another write would fail, unless Delta's schema evolution is on."""
    flow.source("rows")
    step = """
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "id STRING, n INT{more}"}}}}
          writes: {{table: landed, mode: {mode}}}
          settings: {{spark.databricks.delta.schema.autoMerge.enabled: {evolves}}}
        """
    flow.feed("rows", {"id": "a", "n": 1})
    flow.steps(step.format(more="", evolves=evolves, mode=mode))
    flow.run()
    flow.feed("rows", {"id": "a", "n": 2, "email": "a@b"})
    flow.steps(step.format(more=", email STRING", evolves=evolves, mode=mode))
    if not evolves:
        with pytest.raises(ConfigurationError, match="table 'landed' has no column 'email'") as error:
            flow.run()
        (problem,) = error.value.problems
        assert problem.where == "conf/pipelines/flow.yml:6"
        flow.spark.sql(problem.fix.partition("yourself: ")[2])
    flow.run()
    assert {"id": "a", "n": 2, "email": "a@b"} in flow.read("landed")


# ── Copies made from changes ──────────────────────────────────────────────────────────────────────────

COPY = """
source:
  layer: bronze
  reads: {rows: {source: rows, schema: "id STRING, n INT, v STRING"}}
  writes: {table: source, mode: upsert, keys: [id], sequence: n}
copy:
  layer: silver
  reads: {rows: {table: source, changes: true}}
  writes: {table: copy, mode: upsert, keys: [id], sequence: n}
"""


def with_transform(transform):
    """Return the steps with a transform, and more keys of the step, for the copy."""
    return COPY.replace("  writes: {table: copy", f"  transform: {__name__}:{transform}\n  writes: {{table: copy")


def versions(flow, table):
    return sorted((row["id"], row["n"], row["v"]) for row in flow.read(table))


@pytest.mark.full
def test_copy_made_from_changes_equals_its_source(flow):
    flow.steps(COPY)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "v": "first"}, {"id": "b", "n": 1, "v": "first"})
    flow.run()
    flow.feed("rows", {"id": "a", "n": 2, "v": "second"}, {"id": "c", "n": 1, "v": "first"})
    flow.run("source")
    source = flow.spark.read.format("delta").load(str(flow.directory / "tables" / "source"))
    path = f"delta.`{flow.directory}/tables/source`"
    # The copy reads two commits of equal sequence in one batch, then a third one in a batch of its own: the last wins.
    flow.spark.sql(f"UPDATE {path} SET v = 'third' WHERE id = 'a'")
    flow.spark.sql(f"UPDATE {path} SET v = 'fourth' WHERE id = 'a'")
    flow.run("copy")
    assert (
        versions(flow, "copy") == versions(flow, "source") == [("a", 2, "fourth"), ("b", 1, "first"), ("c", 1, "first")]
    )
    flow.spark.sql(f"UPDATE {path} SET v = 'fifth' WHERE id = 'a'")
    flow.run("copy")
    assert versions(flow, "copy") == versions(flow, "source")
    assert flow.spark.read.format("delta").load(str(flow.directory / "tables" / "copy")).columns == source.columns


def test_row_deleted_in_the_source_stops_the_copy_with_a_fix(flow):
    flow.steps(COPY)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "v": "first"}, {"id": "b", "n": 1, "v": "first"})
    flow.run()
    flow.spark.sql(f"DELETE FROM delta.`{flow.directory}/tables/source` WHERE id = 'a'")
    with pytest.raises(StepError, match="rows were deleted in the table whose changes are read") as error:
        flow.run("copy")
    assert error.value.problems[0].fix.startswith("read the table with static: true")
    assert versions(flow, "copy") == [("a", 1, "first"), ("b", 1, "first")]


def without_change_type(rows):
    return rows.drop("_change_type")


def test_copy_whose_transform_drops_the_change_type_is_an_error(flow):
    flow.steps(with_transform("without_change_type"))
    flow.source("rows")
    with pytest.raises(ConfigurationError, match="its transform drops _change_type"):
        flow.rehearse()


def highest_inserted(rows):
    return rows.where("_change_type = 'insert'").groupBy("id").agg(F.max("n").alias("n"))


def test_aggregation_of_changes_needs_no_change_columns(flow):
    flow.steps(with_transform("highest_inserted\n  output: update"))
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "v": "first"}, {"id": "b", "n": 1, "v": "first"})
    flow.run()
    assert sorted(row["id"] for row in flow.read("copy")) == ["a", "b"]
