"""A run that follows: who has something to do in a round, and that what comes goes through all steps."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headrace.config.models import Read, Sink, Step
from headrace.runtime import follow_loop, runner
from headrace.runtime.prepare import PreparedStep
from headrace.runtime.supervisor import QuerySupervisor

OURS, ALSO, OTHER = Read(table="ours"), Read(table="also"), Read(table="of_another_pipeline")
STATIC = Read(table="also", static=True)


@pytest.mark.parametrize(
    ("reads", "moved", "news"),
    [
        ([Read(source="files")], set(), True),  # nobody knows what has come from outside
        ([OTHER], set(), True),
        ([OURS], set(), False),
        ([OURS], {"ours"}, True),
        ([OURS, ALSO], {"also"}, True),
        ([OURS, STATIC], {"also"}, False),  # no row of it has come in
        ([OURS, STATIC], {"ours"}, True),
    ],
)
def test_a_step_has_news_when_one_of_its_streams_may_have_moved(reads, moved, news):
    step = Step(name="s", layer="silver", reads={f"r{at}": read for at, read in enumerate(reads)}, writes=[Sink()])
    ready = PreparedStep(step, schema=None, has_verdicts=False, uses_spark_sink=True)
    assert follow_loop.may_have_input(ready, {"ours", "also"}, moved) is news


def test_files_are_new_when_there_are_others_than_last_time():
    assert follow_loop.has_changed([1], None)
    assert follow_loop.has_changed([2], [1])
    assert not follow_loop.has_changed([1], [1])
    assert follow_loop.has_changed([None], [None])  # a table, or a place elsewhere: nobody knows


@pytest.mark.parametrize(("took", "waits"), [(0.001, 0.05), (0.01, 0.1), (0.2, 0.5)])
def test_the_longer_a_look_takes_the_rarer_it_is(took, waits):
    assert follow_loop.pause(after=took) == pytest.approx(waits)


def test_a_step_is_started_once_for_what_has_come(flow, monkeypatch):
    started, looks = [], []
    run_once = QuerySupervisor.run_once

    def noted(self, ready, defaults):
        started.append(ready.step.name)
        if len(started) > 8:
            os.kill(os.getpid(), signal.SIGTERM)
        return run_once(self, ready, defaults)

    def pause(*, after):
        looks.append(after)
        if len(looks) == 1:
            flow.feed("lines", "two")
        else:
            os.kill(os.getpid(), signal.SIGTERM)
        return 0

    monkeypatch.setattr(QuerySupervisor, "run_once", noted)
    monkeypatch.setattr(follow_loop, "pause", pause)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        """)
    runner.run(flow.spark, flow.bundle(), "flow", follow=True)
    assert started == ["land", "copy"] * 2  # the first round finds out
    assert sorted(row["value"] for row in flow.read("copied")) == ["one", "two"]


def test_what_comes_while_a_run_follows_goes_through_all_steps(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        """)
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


def test_a_run_of_many_rounds_merges_the_files_that_it_writes(flow, monkeypatch):
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
          writes: {table: rawest}
          settings: {spark.databricks.delta.autoCompact.enabled: false}
        """)

    def watch(event):
        if event.step == "raw" and event.batch is not None and event.batch < 7:
            flow.feed("lines", str(event.batch + 1))
        elif event.step == "raw" and event.batch == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    landed, copied, rawest = (
        [entry["operation"] for entry in DeltaTable(str(flow.directory / "tables" / table)).history()[::-1]]
        for table in ("landed", "copied", "rawest")
    )
    assert landed.count("OPTIMIZE") >= 2
    assert "OPTIMIZE" not in landed[: follow_loop.COMPACT_AFTER_ROUNDS + 1]  # a short run merges nothing
    assert copied.count("OPTIMIZE") == 1  # at first all that there is, then only many files
    assert "OPTIMIZE" not in rawest
    for table in ("landed", "copied", "rawest"):  # whoever reads on has each row once
        assert sorted(row["value"] for row in flow.read(table)) == [str(number) for number in range(8)]


@pytest.mark.parametrize(("store", "leaves"), [("HDFSBacked", True), ("RocksDB", False)])
def test_a_step_leaves_the_rounds_when_its_state_is_large_and_read_whole(flow, monkeypatch, store, leaves):
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
    beside = []
    scratch = Path(flow.spark.conf.get("spark.local.dir"))
    opened = set(scratch.glob("spark-*/StateStoreId*"))

    def watch(event):
        if event.step == "copy" and event.batch == 0:
            flow.feed("rows", {"id": "b", "at": "1970-01-01T00:01:00Z"})
        elif event.step == "copy" and event.batch == 1:
            beside.extend(query.name for query in flow.spark.streams.active if query.name != "flow.copy")
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert beside == (["flow.land"] if leaves else [])
    still = set(scratch.glob("spark-*/StateStoreId*")) - opened
    assert len(still) <= 2  # those of the first run, which was no round: one for each partition
    assert sorted(row["id"] for row in flow.read("copied")) == ["a", "b"]


def test_a_step_with_timers_goes_on_by_itself(flow):
    """Nothing that comes in would wake it, once its timers are due."""
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
        count:
          layer: silver
          reads: {lines: {table: landed}}
          transform: runtime.test_runner:counted
          writes: {table: counts}
        """)
    going = []

    def watch(event):
        if event.step == "count" and event.rows:
            flow.feed("lines", "two")
        elif event.step == "land" and event.batch == 1:
            going.extend(query.name for query in flow.spark.streams.active if query.name != "flow.land")
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert going == ["flow.count"]


def test_a_window_is_closed_in_its_round_whatever_has_come_elsewhere(flow):
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
            else:  # gold's turn of this round is still to come, and no sale will
                flow.feed("others", "something")
        elif event.step == "other" and event.rows:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert [row["sales"] for row in flow.read("counted")] == [1]
