"""The batch writer: each row once in each table, whatever a crash has left undone."""

from __future__ import annotations

import shutil
import time
from collections import Counter

import pytest
from deltalake import DeltaTable
from pyspark.sql import Observation
from pyspark.sql import functions as F

from headrace.config.models import Environment, LocalEngine, Read, Rule, Sink, Step, Tables
from headrace.errors import ConfigurationError, StepError
from headrace.expectations import verdict
from headrace.io.delta.delta_table import Table
from headrace.io.sinks import batch_writer
from headrace.io.sinks.batch_writer import BatchCounts, BatchWriter

ROW = "id STRING, n INT, at TIMESTAMP"
BAD = ["not json", {"id": None, "n": 1, "at": "1970-01-01T00:01:00Z"}]
REFUSED = {"malformed": 1, "not_null id": 1}


def row(name, n=1):
    """A row so old that no watermark moves, and so no batch without rows follows."""
    return {"id": name, "n": n, "at": "1970-01-01T00:01:00Z"}


def ids(flow, table):
    return Counter(row["id"] for row in flow.read(table))


def reasons(flow, table):
    return Counter(reason for row in flow.read(table) for reason in row["reasons"])


def refused(run, step):
    return [event.quarantined for event in run.events if event.step == step and event.what == "batch"]


@pytest.mark.parametrize("log_can_be_asked", [True, False])
def test_a_batch_repeated_after_a_crash_is_in_each_table_once(flow, monkeypatch, log_can_be_asked):
    """With state and without: crashed after all writes, before the quarantine's, and in a batch without bad rows."""
    if not log_can_be_asked:  # as on Databricks
        monkeypatch.setattr(Table, "has_batch", lambda *given: None)
        monkeypatch.setattr(batch_writer, "OBSERVATION_LIMIT_S", 0.5)
    flow.steps(f"""
        stateful:
          layer: bronze
          reads:
            rows:
              source: rows
              schema: {ROW}
              watermark: {{column: at, delay: 10 minutes}}
              expect: [{{not_null: [id]}}]
          transform: headrace.transforms.bronze:deduplicate
          with: {{keys: [id]}}
          writes: {{table: stateful}}
        stateless:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "{ROW}", expect: [{{not_null: [id]}}]}}}}
          writes: {{table: stateless}}
        """)
    both = ("stateful", "stateless")
    flow.source("rows")
    flow.feed("rows", row("a"), row("b"), row("b"), *BAD)
    wanted = {"stateful": Counter("ab"), "stateless": Counter("abb")}

    first = flow.run()
    assert {step: ids(flow, step) for step in both} == wanted
    assert [refused(first, step) for step in both] == [[REFUSED]] * 2
    assert [first.total(step, "rows") for step in both] == [5, 5]
    assert first.total("stateful", "duplicates") == 1

    for step in both:
        flow.crash_before_commit(step)
    again = flow.run()
    assert {step: ids(flow, step) for step in both} == wanted
    assert [reasons(flow, f"{step}_quarantine") for step in both] == [REFUSED] * 2
    assert [refused(again, step) for step in both] == [[REFUSED]] * 2
    assert [again.total(step, "rows") for step in both] == [5, 5]
    assert (again.total("stateful", "duplicates"), again.total("stateful", "late")) == (1, 0)

    for step in both:
        flow.crash_before_commit(step, undo=[f"{step}_quarantine"])
        assert not flow.read(f"{step}_quarantine")
    flow.feed("rows", row("c"), row("a"))  # none of them bad
    wanted = {"stateful": Counter("abc"), "stateless": Counter("aabbc")}
    again = flow.run()
    assert {step: ids(flow, step) for step in both} == wanted
    assert [reasons(flow, f"{step}_quarantine") for step in both] == [REFUSED] * 2
    assert [refused(again, step) for step in both] == [[REFUSED, {}]] * 2
    assert again.total("stateful", "duplicates") == 2

    for step in both:
        flow.crash_before_commit(step)
    again = flow.run()
    assert {step: ids(flow, step) for step in both} == wanted
    assert [again.total(step, "rows") for step in both] == [2, 2]
    assert again.total("stateful", "duplicates") == 1


def named(rows, names, *, by):
    """Row by row: a name from a static table, and a number made larger."""
    return rows.join(names, "id", "left").withColumn("n", F.col("n") * by)


def summed(rows):
    return rows.groupBy("id").agg(F.sum("n").alias("n"), F.max("at").alias("last"))


def test_rows_go_one_way_through_several_sinks_and_a_transform_of_their_own(flow, capsys):
    flow.steps(f"""
        names:
          layer: bronze
          reads: {{names: {{source: names, schema: "id STRING, name STRING, since INT"}}}}
          writes: {{table: names, mode: upsert, keys: [id], sequence: since}}
        named:
          layer: bronze
          reads:
            rows:
              source: rows
              schema: {ROW}
              expect: [{{not_null: [id]}}, {{one_of: {{id: [a, b, d]}}, on_fail: warn}}]
            names: {{table: names, static: true}}
          transform: {__name__}:named
          with: {{by: 10}}
          row_wise: true
          expect:
            - {{between: {{n: [0, 50]}}}}
            - {{not_null: [name], on_fail: drop}}
          writes: [{{table: named}}, {{table: copy}}, {{console: true}}]
        """)
    flow.source("names")
    flow.feed("names", {"id": "a", "name": "old", "since": 1}, {"id": "a", "name": "Ada", "since": 2})
    flow.feed("names", {"id": "b", "name": "Bob", "since": 1}, {"id": "d", "name": "Dan", "since": 1})
    flow.source("rows", "json")
    flow.feed("rows", row("a", 1), row("b", 2), row("c", 3), row("d", 6), row("x", 5), *BAD)
    run = flow.run()
    assert [(row["id"], row["n"], row["name"]) for row in flow.read("named")] == [("a", 10, "Ada"), ("b", 20, "Bob")]
    assert flow.read("copy") == flow.read("named")
    printed = capsys.readouterr().out
    assert printed.startswith("batch 0\n")
    assert "Ada" in printed
    assert "Dan" not in printed
    quarantined = {row["raw"][:20]: (row["reasons"], row["position"] is None) for row in flow.read("named_quarantine")}
    assert sorted(quarantined.values()) == [
        (["between n 0 and 50"], True),
        (["malformed"], False),
        (["not_null id"], False),
    ]
    assert {(row["step"], row["batch"]) for row in flow.read("named_quarantine")} == {("named", 0)}
    (event,) = [event for event in run.events if event.step == "named" and event.what == "batch"]
    assert event.quarantined == {**REFUSED, "between n 0 and 50": 1}
    assert event.dropped == {"not_null name": 2}
    assert event.warned == {"one_of id": 2}
    assert event.rows == 7  # read once for two tables, the quarantine, the console and all counts


def test_a_steps_own_rules_are_asked_of_all_good_rows_and_of_no_other(flow):
    """One that was warned of on arrival is good; a malformed one has no columns that a rule could stop at."""
    flow.source("rows")
    flow.feed("rows", row("a", 1), row("a", 9), row("b", 9), BAD[0])
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "{ROW}", expect: [{{between: {{n: [0, 5]}}, on_fail: warn}}]}}}}
          expect: [{{one_of: {{id: [a]}}}}, {{not_null: [id], on_fail: stop}}]
          writes: {{table: landed}}
        """)
    run = flow.run()
    assert sorted((row["id"], row["n"]) for row in flow.read("landed")) == [("a", 1), ("a", 9)]
    assert reasons(flow, "landed_quarantine") == {"malformed": 1, "one_of id": 1}
    (event,) = [event for event in run.events if event.what == "batch"]
    assert event.quarantined == {"malformed": 1, "one_of id": 1}
    assert event.warned == {"between n 0 and 5": 2}
    assert event.rows == 4


def test_a_later_result_of_a_group_is_newer_whatever_its_sequence_says(flow):
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
    flow.feed("rows", row("a", 2))  # of the same time, so that the last one stays
    flow.run()
    assert [(row["id"], row["n"]) for row in flow.read("sums")] == [("a", 3)]


@pytest.fixture
def writer(spark, tmp_path):
    """Makes the batch writer of a step, and the frames that Spark would call it with."""
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root=str(tmp_path)), checkpoints="none"
    )
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "a query")
    noted: dict[int, BatchCounts] = {}

    def make(*sinks, expect=(), transform=None):
        step = Step(name="s", layer="bronze", reads={}, writes=sinks, expect=expect)
        return BatchWriter(step, environment, transform=transform, on_counts=noted.__setitem__), noted

    yield make
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)


def rows_of(tmp_path, table):
    return sorted(row["n"] for row in DeltaTable(str(tmp_path / table)).to_pyarrow_table().to_pylist())


def test_a_batch_that_failed_between_two_writes_is_finished_by_the_same_writer(spark, writer, tmp_path):
    """As when a step whose on_failure is `continue` is run again in the same session."""
    write, noted = writer(Sink(table="t"), expect=[Rule(between={"n": [0, 9]})])
    write(spark.createDataFrame([(1,)], "n INT"), 0)
    batch = spark.createDataFrame([(2,), (10,), (11,)], "n INT")
    (tmp_path / "t_quarantine").write_text("in the way")
    with pytest.raises(Exception, match="t_quarantine"):
        write(batch, 1)
    (tmp_path / "t_quarantine").unlink()
    write(batch, 1)
    assert rows_of(tmp_path, "t") == [1, 2]
    assert DeltaTable(str(tmp_path / "t_quarantine")).to_pyarrow_table()["raw"].to_pylist() == ['{"n":10}', '{"n":11}']
    assert noted == {0: BatchCounts(), 1: BatchCounts(quarantined={"between n 0 and 9": 2})}


def test_replace_keeps_the_last_batch_and_a_new_writer_knows_what_is_written(spark, writer, tmp_path):
    sinks = (Sink(table="all"), Sink(table="last", mode="replace"))
    batches_ = [spark.createDataFrame([(n,), (-n,)], "n INT") for n in (1, 2)]
    write, _ = writer(*sinks)
    for number, batch in enumerate(batches_):
        write(batch, number)
    write, _ = writer(*sinks)  # started again: the last batch comes once more
    write(batches_[1], 1)
    assert rows_of(tmp_path, "all") == [-2, -1, 1, 2]
    assert rows_of(tmp_path, "last") == [-2, 2]
    assert [DeltaTable(str(tmp_path / name)).version() for name in ("all", "last")] == [1, 1]


def test_a_batch_of_bad_rows_alone_can_be_merged(spark, writer, tmp_path):
    spark.createDataFrame([(1, 1)], "n INT, s INT").write.format("delta").save(str(tmp_path / "t"))
    sink = Sink(table="t", mode="upsert", keys=["n"], sequence="s")
    write, noted = writer(sink, expect=[Rule(not_null=["s"])])
    write(spark.createDataFrame([(1, None)], "n INT, s INT"), 0)
    write(spark.createDataFrame([], "n INT, s INT"), 1)
    assert rows_of(tmp_path, "t") == [1]
    assert noted == {0: BatchCounts(quarantined={"not_null s": 1}), 1: BatchCounts()}


def test_without_a_table_refusals_are_counted_only(spark, writer, capsys):
    write, noted = writer(Sink(console=True), expect=[Rule(not_null=["n"], on_fail="drop")])
    write(spark.createDataFrame([(1,), (None,)], "n INT"), 0)
    assert "1" in capsys.readouterr().out
    assert noted == {0: BatchCounts(dropped={"not_null n": 1}, passes=2)}


def test_a_sink_that_writes_no_batches_is_refused(spark, writer):
    write, _ = writer(Sink(memory="m"), Sink(console=True))
    with pytest.raises(ConfigurationError, match="a memory cannot be one of several sinks"):
        write(spark.createDataFrame([(1,)], "n INT"), 0)


def test_judged_rows_of_a_source_keep_their_raw_record(spark, writer, tmp_path):
    """The verdict of the arrival goes with the row through the writer, and is no column of the table."""
    arrived = spark.createDataFrame(
        [(1, "one", "file 1", False), (None, "two", "file 2", True)],
        f"n INT, {verdict.RAW} STRING, {verdict.POSITION} STRING, {verdict.MALFORMED} BOOLEAN",
    )
    write, _ = writer(Sink(table="t"))
    write(verdict.check_source_rows(arrived, Read(source="s")), 0)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist() == [{"n": 1}]
    (refused_row,) = DeltaTable(str(tmp_path / "t_quarantine")).to_pyarrow_table().to_pylist()
    assert {key: refused_row[key] for key in ("raw", "position", "reasons", "step", "batch")} == {
        "raw": "two",
        "position": "file 2",
        "reasons": ["malformed"],
        "step": "s",
        "batch": 0,
    }


def test_a_table_written_after_the_console_has_a_repeated_batch_once(flow):
    """Whatever the order in the file: a table can tell whether it has a batch, and so it is asked first."""
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: [{console: true}, {table: landed}]}
        """)
    flow.source("rows")
    flow.feed("rows", {"n": 1}, "no json")
    flow.run()
    flow.crash_before_commit("land")
    flow.run()
    assert [row["n"] for row in flow.read("landed")] == [1]
    assert reasons(flow, "landed_quarantine") == {"malformed": 1}


def test_a_table_that_was_a_steps_first_has_a_repeated_batch_once(flow):
    """Between a crash and its repetition another table has come to stand before it."""
    step = "land: {{layer: bronze, reads: {{rows: {{source: rows, schema: n INT}}}}, writes: {0}}}\n"
    flow.source("rows")
    flow.feed("rows", {"n": 1})
    flow.steps(step.format("{table: old}"))
    flow.run()
    flow.crash_before_commit("land")
    flow.steps(step.format("[{table: new}, {table: old}]"))
    flow.run()
    assert [[row["n"] for row in flow.read(table)] for table in ("new", "old")] == [[1], [1]]


def counted(rows):
    return rows.groupBy("id").agg(F.count("*").alias("n"))


def test_the_whole_result_takes_the_place_of_the_last_one(flow):
    """With output complete: by Spark's own sink, with rules, and into two tables; another step reads what changed."""
    step = "{{layer: gold, reads: {{rows: {{table: landed}}}}, transform: {0}:counted, output: complete, {1}}}"
    flow.steps(f"""
        land: {{layer: bronze, reads: {{rows: {{source: rows, schema: "{ROW}"}}}}, writes: {{table: landed}}}}
        plain: {step.format(__name__, "writes: {table: plain}")}
        judged: {step.format(__name__, "expect: [{between: {n: [1, 2]}}], writes: {table: judged}")}
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
    wanted = {"plain": {"a": 2, "b": 3}, "judged": {"a": 2}, "one": {"a": 2, "b": 3}, "two": {"a": 2, "b": 3}}
    assert {table: {row["id"]: row["n"] for row in flow.read(table)} for table in wanted} == wanted
    assert {table: len(flow.read(table)) for table in wanted} == {table: len(rows) for table, rows in wanted.items()}
    assert [row["raw"] for row in flow.read("judged_quarantine")] == ['{"id":"b","n":3}']
    told = Counter((row["_change_type"], row["id"], row["n"]) for row in flow.read("changed"))
    first, second = (("a", 1), ("b", 2)), (("a", 2), ("b", 3))
    assert told == Counter([*(("insert", *one) for one in (*first, *second)), *(("delete", *one) for one in first)])


def test_an_upserted_table_is_partitioned_as_the_step_says(flow):
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
    told = [(row["_change_type"], row["n"]) for row in flow.read("changed")]
    assert sorted(told) == [("insert", 1), ("update_postimage", 2), ("update_preimage", 1)]


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


def versions(flow, table):
    return sorted((row["id"], row["n"], row["v"]) for row in flow.read(table))


def test_a_copy_made_of_changes_is_equal_to_its_source(flow):
    flow.steps(COPY)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "v": "first"}, {"id": "b", "n": 1, "v": "first"})
    flow.run()
    flow.feed("rows", {"id": "a", "n": 2, "v": "second"}, {"id": "c", "n": 1, "v": "first"})
    flow.run("source")
    source = flow.spark.read.format("delta").load(str(flow.directory / "tables" / "source"))
    path = f"delta.`{flow.directory}/tables/source`"
    # Two commits that the copy reads in one batch, and one of its own, all of equal sequence: the last one wins.
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


def test_a_row_deleted_in_the_source_stops_the_copy_and_says_how_to_go_on(flow):
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


def test_a_copy_whose_transform_drops_the_type_of_change_is_refused(flow):
    flow.steps(
        COPY.replace("  writes: {table: copy", f"  transform: {__name__}:without_change_type\n  writes: {{table: copy")
    )
    flow.source("rows")
    with pytest.raises(ConfigurationError, match="its transform drops _change_type"):
        flow.rehearse()


def total_of_changes(rows):
    return rows.where("_change_type = 'insert'").groupBy("id").agg(F.max("n").alias("n"))


def test_changes_that_are_counted_are_no_copy(flow):
    steps = COPY.replace(
        "  writes: {table: copy", f"  transform: {__name__}:total_of_changes\n  output: update\n  writes: {{table: copy"
    )
    flow.steps(steps)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1, "v": "first"}, {"id": "b", "n": 1, "v": "first"})
    flow.run()
    assert sorted(row["id"] for row in flow.read("copy")) == ["a", "b"]


@pytest.mark.parametrize("writes", ["{table: landed}", "{table: landed, mode: upsert, keys: [id], sequence: n}"])
@pytest.mark.parametrize("log_can_be_asked", [True, False])
def test_checkpoints_older_than_their_table_write_no_row_twice(flow, monkeypatch, writes, log_can_be_asked):
    """Several batches are repeated, each with a bad row; stock Spark and Delta give the same good rows."""
    if not log_can_be_asked:
        monkeypatch.setattr(Table, "has_batch", lambda *given: None)
        monkeypatch.setattr(batch_writer, "OBSERVATION_LIMIT_S", 0.5)
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "{ROW}", expect: [{{not_null: [id]}}]}}}}
          writes: {writes}
        """)
    flow.source("rows", maxFilesPerTrigger=1)
    flow.feed("rows", row("a"))
    flow.run()
    checkpoints, older = flow.directory / "checkpoints", flow.directory / "older"
    shutil.copytree(checkpoints, older)
    flow.feed("rows", row("b"), BAD[0])
    flow.feed("rows", row("c"))
    flow.run()
    shutil.rmtree(checkpoints)
    shutil.move(older, checkpoints)
    flow.feed("rows", row("d"), BAD[0])
    run = flow.run()
    assert ids(flow, "landed") == Counter("abcd")
    assert reasons(flow, "landed_quarantine") == {"malformed": 2}
    assert refused(run, "land") == [{"malformed": 1}, {}, {"malformed": 1}]


def test_metrics_of_a_plan_that_never_ran_are_not_waited_for(spark):
    observation = Observation()
    spark.range(3).observe(observation, F.count("id").alias("remarked"))
    assert batch_writer._metrics(observation, time.monotonic() + 0.1) is None
