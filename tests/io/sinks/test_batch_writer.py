"""The batch writer: each row is in each table once, wherever a crash has interrupted a batch."""

from __future__ import annotations

import shutil
import time
from collections import Counter

import pytest
from deltalake import DeltaTable
from pyspark.sql import Observation
from pyspark.sql import functions as F

from headrace.config.models import Environment, LocalEngine, Read, Rule, Sink, Step, Tables
from headrace.expectations import verdict
from headrace.io.delta.delta_table import Table
from headrace.io.sinks import batch_writer
from headrace.io.sinks.batch_writer import BatchCounts, BatchWriter
from headrace.runtime.start_guard import StartGuard
from selection import mostly_full

ROW = "id STRING, n INT, at TIMESTAMP"
BAD = ["not json", {"id": None, "n": 1, "at": "1970-01-01T00:01:00Z"}]
BAD_REASONS = {"malformed": 1, "not_null id": 1}


def row(name, n=1):
    """Return a row so old that no watermark advances, so that no batch without rows follows."""
    return {"id": name, "n": n, "at": "1970-01-01T00:01:00Z"}


def ids(flow, table):
    return Counter(row["id"] for row in flow.read(table))


def reasons(flow, table):
    return Counter(reason for row in flow.read(table) for reason in row["reasons"])


def quarantined(run, step):
    return [event.quarantined for event in run.events if event.step == step and event.what == "batch"]


def hide_delta_log(monkeypatch):
    """Make tables unable to answer whether they have a batch, as on Databricks."""
    monkeypatch.setattr(Table, "has_batch", lambda *arguments: None)
    monkeypatch.setattr(batch_writer, "OBSERVATION_LIMIT_S", 0.5)


# ── Crashes ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("log_is_readable", mostly_full([True, False], True))
def test_batch_repeated_after_a_crash_is_in_each_table_once(flow, monkeypatch, log_is_readable):
    """With state and without: after all writes, before the write to the quarantine, in a batch without bad rows."""
    if not log_is_readable:
        hide_delta_log(monkeypatch)
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
    steps = ("stateful", "stateless")
    flow.source("rows")
    flow.feed("rows", row("a"), row("b"), row("b"), *BAD)
    expected = {"stateful": Counter("ab"), "stateless": Counter("abb")}

    run = flow.run()
    assert {step: ids(flow, step) for step in steps} == expected
    assert [quarantined(run, step) for step in steps] == [[BAD_REASONS]] * 2
    assert [run.total(step, "rows") for step in steps] == [5, 5]
    assert run.total("stateful", "duplicates") == 1

    for step in steps:
        flow.crash_before_commit(step)
    run = flow.run()
    assert {step: ids(flow, step) for step in steps} == expected
    assert [reasons(flow, f"{step}_quarantine") for step in steps] == [BAD_REASONS] * 2
    assert [quarantined(run, step) for step in steps] == [[BAD_REASONS]] * 2
    assert [run.total(step, "rows") for step in steps] == [5, 5]
    assert (run.total("stateful", "duplicates"), run.total("stateful", "late")) == (1, 0)

    for step in steps:
        flow.crash_before_commit(step, undo=[f"{step}_quarantine"])
        assert not flow.read(f"{step}_quarantine")
    flow.feed("rows", row("c"), row("a"))  # no bad rows
    expected = {"stateful": Counter("abc"), "stateless": Counter("aabbc")}
    run = flow.run()
    assert {step: ids(flow, step) for step in steps} == expected
    assert [reasons(flow, f"{step}_quarantine") for step in steps] == [BAD_REASONS] * 2
    assert [quarantined(run, step) for step in steps] == [[BAD_REASONS, {}]] * 2
    assert run.total("stateful", "duplicates") == 2

    for step in steps:
        flow.crash_before_commit(step)
    run = flow.run()
    assert {step: ids(flow, step) for step in steps} == expected
    assert [run.total(step, "rows") for step in steps] == [2, 2]
    assert run.total("stateful", "duplicates") == 1


@pytest.mark.parametrize("writes", ["{table: landed}", "{table: landed, mode: upsert, keys: [id], sequence: n}"])
@pytest.mark.parametrize("log_is_readable", mostly_full([True, False], True))
def test_checkpoint_older_than_its_table_writes_no_row_twice(flow, monkeypatch, writes, log_is_readable):
    """Several batches are repeated, each with a bad row; stock Spark and Delta give the same good rows.

    A start on such a checkpoint is refused, unless the table's log cannot be read.
    """
    monkeypatch.setattr(StartGuard, "check_pairs", lambda guard: [])
    if not log_is_readable:
        hide_delta_log(monkeypatch)
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
    assert quarantined(run, "land") == [{"malformed": 1}, {}, {"malformed": 1}]


def test_repeated_batch_is_in_the_table_once_although_the_console_is_listed_first(flow):
    """The table is written first, whatever the order in the file: only a table knows whether it has a batch."""
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


def test_repeated_batch_is_in_the_old_table_once_after_a_table_was_added_before_it(flow):
    step = "land: {{layer: bronze, reads: {{rows: {{source: rows, schema: n INT}}}}, writes: {0}}}\n"
    flow.source("rows")
    flow.feed("rows", {"n": 1})
    flow.steps(step.format("{table: old}"))
    flow.run()
    flow.crash_before_commit("land")
    flow.steps(step.format("[{table: new}, {table: old}]"))
    flow.run()
    assert [[row["n"] for row in flow.read(table)] for table in ("new", "old")] == [[1], [1]]


# ── Rows, counts and several sinks ────────────────────────────────────────────────────────────────────


def with_names(rows, names, *, by):
    """Add a name from a static table, and multiply the number."""
    return rows.join(names, "id", "left").withColumn("n", F.col("n") * by)


def test_one_read_serves_a_row_wise_transform_several_sinks_and_all_counts(flow, capsys):
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
          transform: {__name__}:with_names
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
    bad_rows = {row["raw"][:20]: (row["reasons"], row["position"] is None) for row in flow.read("named_quarantine")}
    assert sorted(bad_rows.values()) == [
        (["between n 0 and 50"], True),
        (["malformed"], False),
        (["not_null id"], False),
    ]
    assert {(row["step"], row["batch"]) for row in flow.read("named_quarantine")} == {("named", 0)}
    (event,) = [event for event in run.events if event.step == "named" and event.what == "batch"]
    assert event.quarantined == {**BAD_REASONS, "between n 0 and 50": 1}
    assert event.dropped == {"not_null name": 2}
    assert event.warned == {"one_of id": 2}
    assert event.rows == 7  # read once for two tables, the quarantine, the console and all counts


def test_rules_of_the_step_apply_to_good_rows_only(flow):
    """A row that only got a warning on arrival is good. A malformed row has no columns that could stop the step."""
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


# ── The writer without a query ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def writer(spark, tmp_path):
    """Return a function that creates the batch writer of a step, and the dict that receives its counts."""
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root=str(tmp_path)), checkpoints="none"
    )
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "a query")
    counts: dict[int, BatchCounts] = {}

    def create(*sinks, expect=(), transform=None):
        step = Step(name="s", layer="bronze", reads={}, writes=sinks, expect=expect)
        return BatchWriter(step, environment, transform=transform, on_counts=counts.__setitem__), counts

    yield create
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)


def numbers(tmp_path, table):
    return sorted(row["n"] for row in DeltaTable(str(tmp_path / table)).to_pyarrow_table().to_pylist())


def test_batch_that_failed_between_two_writes_is_completed_by_the_same_writer(spark, writer, tmp_path):
    """As in a step with on_failure: continue that is started again in the same session."""
    write, counts = writer(Sink(table="t"), expect=[Rule(between={"n": [0, 9]})])
    write(spark.createDataFrame([(1,)], "n INT"), 0)
    batch = spark.createDataFrame([(2,), (10,), (11,)], "n INT")
    (tmp_path / "t_quarantine").write_text("a file where the table should be")
    with pytest.raises(Exception, match="t_quarantine"):
        write(batch, 1)
    (tmp_path / "t_quarantine").unlink()
    write(batch, 1)
    assert numbers(tmp_path, "t") == [1, 2]
    assert DeltaTable(str(tmp_path / "t_quarantine")).to_pyarrow_table()["raw"].to_pylist() == ['{"n":10}', '{"n":11}']
    assert counts == {0: BatchCounts(), 1: BatchCounts(quarantined={"between n 0 and 9": 2})}


def test_replaced_table_has_the_last_batch_and_a_new_writer_repeats_nothing(spark, writer, tmp_path):
    sinks = (Sink(table="all"), Sink(table="last", mode="replace"))
    batches = [spark.createDataFrame([(n,), (-n,)], "n INT") for n in (1, 2)]
    write, _ = writer(*sinks)
    for number, batch in enumerate(batches):
        write(batch, number)
    write, _ = writer(*sinks)  # after a restart, the last batch is repeated
    write(batches[1], 1)
    assert numbers(tmp_path, "all") == [-2, -1, 1, 2]
    assert numbers(tmp_path, "last") == [-2, 2]
    assert [DeltaTable(str(tmp_path / name)).version() for name in ("all", "last")] == [1, 1]


def test_batch_with_only_bad_rows_can_be_merged(spark, writer, tmp_path):
    spark.createDataFrame([(1, 1)], "n INT, s INT").write.format("delta").save(str(tmp_path / "t"))
    sink = Sink(table="t", mode="upsert", keys=["n"], sequence="s")
    write, counts = writer(sink, expect=[Rule(not_null=["s"])])
    write(spark.createDataFrame([(1, None)], "n INT, s INT"), 0)
    write(spark.createDataFrame([], "n INT, s INT"), 1)
    assert numbers(tmp_path, "t") == [1]
    assert counts == {0: BatchCounts(quarantined={"not_null s": 1}), 1: BatchCounts()}


def test_without_a_table_failed_rows_are_only_counted(spark, writer, capsys):
    write, counts = writer(Sink(console=True), expect=[Rule(not_null=["n"], on_fail="drop")])
    write(spark.createDataFrame([(1,), (None,)], "n INT"), 0)
    assert "1" in capsys.readouterr().out
    assert counts == {0: BatchCounts(dropped={"not_null n": 1}, plan_runs=2)}


def test_checked_rows_of_a_source_keep_their_raw_record(spark, writer, tmp_path):
    """The verdict from the source passes through the writer with its row, and is not a column of the table."""
    rows = spark.createDataFrame(
        [(1, "one", "file 1", False), (None, "two", "file 2", True)],
        f"n INT, {verdict.RAW} STRING, {verdict.POSITION} STRING, {verdict.MALFORMED} BOOLEAN",
    )
    write, _ = writer(Sink(table="t"))
    write(verdict.check_source_rows(rows, Read(source="s")), 0)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist() == [{"n": 1}]
    (bad_row,) = DeltaTable(str(tmp_path / "t_quarantine")).to_pyarrow_table().to_pylist()
    assert {key: bad_row[key] for key in ("raw", "position", "reasons", "step", "batch")} == {
        "raw": "two",
        "position": "file 2",
        "reasons": ["malformed"],
        "step": "s",
        "batch": 0,
    }


def test_metrics_of_a_plan_that_did_not_run_are_awaited_until_the_deadline_only(spark):
    observation = Observation()
    spark.range(3).observe(observation, F.count("id").alias("rows"))
    assert batch_writer._wait_for_metrics(observation, time.monotonic() + 0.1) is None
