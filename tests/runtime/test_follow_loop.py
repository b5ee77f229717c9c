"""Runs with --follow: which steps a round starts, and that new rows pass through all steps."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from headrace.config.models import Read, Sink, Step
from headrace.errors import StepError
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import set_writers, table_identity
from headrace.runtime import follow_loop, reset, runner
from headrace.runtime.prepare import PreparedStep
from headrace.runtime.supervisor import QuerySupervisor

OWN, ALSO_OWN, OTHER = Read(table="own"), Read(table="also_own"), Read(table="of_another_pipeline")
STATIC = Read(table="also_own", static=True)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LAND_AND_COPY = """
land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
"""


@pytest.mark.parametrize(
    ("reads", "changed", "expected"),
    [
        ([Read(source="files")], set(), True),  # changes outside of the loop are unknown
        ([OTHER], set(), True),
        ([OWN], set(), False),
        ([OWN], {"own"}, True),
        ([OWN, ALSO_OWN], {"also_own"}, True),
        ([OWN, STATIC], {"also_own"}, False),  # a static table brings no rows
        ([OWN, STATIC], {"own"}, True),
    ],
)
def test_step_may_have_input_when_one_of_its_streams_may_have_changed(reads, changed, expected):
    step = Step(name="s", layer="silver", reads={f"r{at}": read for at, read in enumerate(reads)}, writes=[Sink()])
    prepared = PreparedStep(step, schema=None, has_verdicts=False, uses_spark_sink=True)
    assert follow_loop.may_have_input(prepared, {"own", "also_own"}, changed) is expected


def test_fingerprints_that_differ_mean_new_input():
    assert follow_loop.has_changed([1], None)
    assert follow_loop.has_changed([2], [1])
    assert not follow_loop.has_changed([1], [1])
    assert follow_loop.has_changed([None], [None])  # a table, or a directory elsewhere: unknown


@pytest.mark.parametrize(("seconds", "expected"), [(0.001, 0.05), (0.01, 0.1), (0.2, 0.5)])
def test_pause_grows_with_the_time_that_listing_takes(seconds, expected):
    assert follow_loop.pause_seconds(listing_seconds=seconds) == pytest.approx(expected)


def test_step_is_started_once_for_its_new_input(flow, monkeypatch):
    started, pauses = [], []
    run_once = QuerySupervisor.run_once

    def record_start(self, step, defaults):
        started.append(step.step.name)
        if len(started) > 8:
            os.kill(os.getpid(), signal.SIGTERM)
        return run_once(self, step, defaults)

    def pause_seconds(*, listing_seconds):
        pauses.append(listing_seconds)
        if len(pauses) == 1:
            flow.feed("lines", "two")
        else:
            os.kill(os.getpid(), signal.SIGTERM)
        return 0

    monkeypatch.setattr(QuerySupervisor, "run_once", record_start)
    monkeypatch.setattr(follow_loop, "pause_seconds", pause_seconds)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LAND_AND_COPY)
    runner.run(flow.spark, flow.bundle(), "flow", follow=True)
    assert started == ["land", "copy"] * 2  # the first round starts all steps
    assert sorted(row["value"] for row in flow.read("copied")) == ["one", "two"]


def test_rows_that_arrive_while_a_run_follows_pass_through_all_steps(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LAND_AND_COPY)
    events = []

    def watch(event):
        events.append(event)
        if event.step == "copy" and event.batch == 0:
            flow.feed("lines", "two")
        elif event.step == "copy" and event.batch == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert sorted(row["value"] for row in flow.read("copied")) == ["one", "two"]
    assert events[-1].what == "run stopped"
    assert [(event.step, event.rows) for event in events if event.rows] == [("land", 1), ("copy", 1)] * 2


def remove_checkpoint(flow):
    shutil.rmtree(flow.directory / "checkpoints" / "flow" / "copy")


def remove_table(flow):
    shutil.rmtree(flow.directory / "tables" / "copied")
    flow.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def write_as_another_step(flow):
    writer = replace(table_identity(flow.spark, table_of(flow.bundle().environment, "copied"))[1][0], step="other")
    set_writers(flow.spark, table_of(flow.bundle().environment, "copied"), [writer])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove_checkpoint, "the checkpoint of step 'copy' was removed or replaced while the step was running"),
        pytest.param(remove_table, "table 'copied' was removed or replaced", marks=pytest.mark.full),
        pytest.param(write_as_another_step, "table 'copied' .* got another writer", marks=pytest.mark.full),
    ],
)
def test_step_that_loses_its_checkpoint_or_table_between_two_rounds_stops(flow, change, message):
    """Its next query would write all rows a second time, or only the new ones."""
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LAND_AND_COPY)

    def watch(event):
        if event.step == "land" and event.batch == 1:
            change(flow)
        elif event.step == "land" and event.batch == 0:
            flow.feed("lines", "two")
        elif event.step == "copy" and event.batch == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StepError, match=message):
        runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert [row["value"] for row in flow.read("copied")] == ([] if change is remove_table else ["one"])
    planned = reset.plan_reset(flow.spark, flow.bundle(), "flow", ["copy"])  # as the error recommends
    reset.apply_reset(flow.spark, flow.bundle(), planned)
    flow.run()
    assert sorted(row["value"] for row in flow.read("copied")) == ["one", "two"]


@pytest.mark.full
def test_long_run_compacts_the_files_that_it_writes(flow, monkeypatch):
    monkeypatch.setattr(follow_loop, "COMPACT_AFTER_ROUNDS", 2)
    flow.source("lines", "text")
    flow.feed("lines", "0")
    flow.steps("""
        land:
          layer: bronze
          reads: {lines: {source: lines}}
          writes: {table: landed}
          settings: {spark.databricks.delta.autoCompact.minNumFiles: 2}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        raw:
          layer: silver
          reads: {lines: {table: landed}}
          writes: {table: uncompacted}
          settings: {spark.databricks.delta.autoCompact.enabled: false}
        """)

    def watch(event):
        if event.step == "raw" and event.batch is not None and event.batch < 7:
            flow.feed("lines", str(event.batch + 1))
        elif event.step == "raw" and event.batch == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    landed, copied, uncompacted = (
        [entry["operation"] for entry in DeltaTable(str(flow.directory / "tables" / table)).history()[::-1]]
        for table in ("landed", "copied", "uncompacted")
    )
    assert landed.count("OPTIMIZE") >= 2
    assert "OPTIMIZE" not in landed[: follow_loop.COMPACT_AFTER_ROUNDS + 1]  # a short run compacts nothing
    assert copied.count("OPTIMIZE") == 1  # first all files, later only many of them
    assert "OPTIMIZE" not in uncompacted
    for table in ("landed", "copied", "uncompacted"):  # readers of a compacted table get each row once
        assert sorted(row["value"] for row in flow.read(table)) == [str(number) for number in range(8)]


@pytest.mark.parametrize(("store", "leaves"), [("HDFSBacked", True), ("RocksDB", False)])
def test_step_leaves_the_loop_when_each_start_would_load_its_large_state(flow, monkeypatch, store, leaves):
    monkeypatch.setattr(follow_loop, "LARGE_STATE_ROWS", 0)
    flow.source("rows")
    flow.feed("rows", {"id": "a", "at": "1970-01-01T00:01:00Z"})
    provider = f"org.apache.spark.sql.execution.streaming.state.{store}StateStoreProvider"
    flow.steps(f"""
        land:
          layer: bronze
          reads:
            rows: {{source: rows, schema: "id STRING, at TIMESTAMP", watermark: {{column: at, delay: 10 minutes}}}}
          transform: headrace.transforms.bronze:deduplicate
          with: {{keys: [id]}}
          writes: {{table: landed}}
          settings: {{{follow_loop.STATE_STORE}: {provider}}}
        copy: {{layer: silver, reads: {{rows: {{table: landed}}}}, writes: {{table: copied}}}}
        """)
    continuous = []
    scratch = Path(flow.spark.conf.get("spark.local.dir"))
    before = set(scratch.glob("spark-*/StateStoreId*"))

    def watch(event):
        if event.step == "copy" and event.batch == 0:
            flow.feed("rows", {"id": "b", "at": "1970-01-01T00:01:00Z"})
        elif event.step == "copy" and event.batch == 1:
            continuous.extend(query.name for query in flow.spark.streams.active if query.name != "flow.copy")
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert continuous == (["flow.land"] if leaves else [])
    loaded = set(scratch.glob("spark-*/StateStoreId*")) - before
    assert len(loaded) <= 2  # those of the first run, before the rounds: one for each partition
    assert sorted(row["id"] for row in flow.read("copied")) == ["a", "b"]


@pytest.mark.parametrize(("restored", "expected"), [({}, False), ({follow_loop.STATE_STORE: "HDFSBacked"}, True)])
def test_state_store_of_the_checkpoint_decides_whether_all_state_is_loaded(restored, expected):
    step = Step(name="s", layer="gold", reads={}, writes=(), settings={follow_loop.STATE_STORE: ROCKSDB})
    supervisor = SimpleNamespace(restored_settings={"s": restored})
    assert follow_loop.loads_all_state(supervisor, step) is expected


def test_step_with_timers_runs_continuously(flow):
    """No input would start it when its timers are due."""
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
        count:
          layer: silver
          reads: {lines: {table: landed}}
          transform: runs:count_with_timers
          writes: {table: counts}
        """)
    active = []

    def watch(event):
        if event.step == "count" and event.rows:
            flow.feed("lines", "two")
        elif event.step == "land" and event.batch == 1:
            active.extend(query.name for query in flow.spark.streams.active if query.name != "flow.land")
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert active == ["flow.count"]


def test_window_is_closed_in_its_own_round_whatever_arrives_elsewhere(flow):
    flow.source("sales")
    flow.source("others", "text")
    flow.feed("sales", '{"at": "2026-03-01T12:00:10Z"}')
    flow.steps("""
        other: {layer: bronze, reads: {others: {source: others}}, writes: {table: others}}
        land:
          layer: bronze
          reads: {sales: {source: sales, schema: at TIMESTAMP}}
          writes: {table: landed}
        count:
          layer: gold
          reads: {sales: {table: landed, watermark: {column: at, delay: 10 seconds}}}
          transform: headrace.transforms.gold:aggregate_windows
          with: {time: at, window: 1 minute, aggregates: {sales: {count: "*"}}}
          writes: {table: counted}
        """)
    landed = []

    def watch(event):
        if event.step == "land" and event.rows:
            landed.append(event)
            if len(landed) == 1:
                flow.feed("sales", '{"at": "2026-03-01T12:01:30Z"}')
            else:  # step count is still to run in this round, and no more sales will arrive
                flow.feed("others", "something")
        elif event.step == "other" and event.rows:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert [row["sales"] for row in flow.read("counted")] == [1]
