"""Runs: which steps, in which order, until when, and what a failing one means for the others."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from headrace.checkpoints.lock import Lock
from headrace.config.load import load_bundle
from headrace.config.models import Every, LocalEngine
from headrace.errors import ConfigurationError, GuardError, StepError
from headrace.runtime import runner, supervisor
from headrace.runtime.events import read_events

REPOSITORY = Path(__file__).parents[2]
ARMED, AWAITED = threading.Event(), threading.Event()
LINES = "lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: lines}}"
PICKY = """
picky:
  layer: bronze
  reads: {lines: {source: lines, expect: [{matches: {value: "[a-z]+"}, on_fail: stop}]}}
  writes: {table: picky}
"""


def triggered(bundle, trigger, **triggers):
    environment = bundle.environment.model_copy(update={"trigger": trigger, "triggers": triggers})
    return bundle.model_copy(update={"environment": environment})


def values(flow, table):
    return sorted(row["value"] for row in flow.read(table))


def whats(flow):
    return [event.what for event in read_events(flow.bundle().directory, "flow") if event.what != "batch"]


# ── Which steps ───────────────────────────────────────────────────────────────────────────────────────


def test_steps_run_in_their_order_whatever_order_they_are_named_in():
    bundle = load_bundle(REPOSITORY)
    chosen = runner.select_steps(bundle, "orders", ["gold_revenue", "customers"])
    assert [step.name for step in chosen] == ["customers", "gold_revenue"]
    assert len(runner.select_steps(bundle, "orders", ())) == 4


def test_an_unknown_step_is_named():
    with pytest.raises(ConfigurationError, match="pipeline 'orders' has no step 'gold'"):
        runner.select_steps(load_bundle(REPOSITORY), "orders", ["customers", "gold"])


@pytest.mark.parametrize(
    ("trigger", "triggers", "asked", "goes_on"),
    [
        ("available_now", {}, {}, False),
        ("once", {}, {}, False),
        ("default", {}, {}, True),
        (Every(every="5 seconds"), {}, {}, True),
        ("available_now", {"gold_revenue": "default"}, {}, True),
        ("default", {"customers": "once"}, {"only": ["customers"]}, False),
        ("default", {}, {"once": True}, False),
        ("available_now", {}, {"follow": True}, True),
    ],
)
def test_a_run_goes_on_when_one_of_its_steps_does(trigger, triggers, asked, goes_on):
    bundle = triggered(load_bundle(REPOSITORY), trigger, **triggers)
    assert runner.is_unbounded(bundle, "orders", **{"follow": False, "once": False, **asked}) is goes_on


# ── What becomes of them ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("on_failure", "others"), [("stop", []), ("continue", ["7"])])
def test_a_failed_step_says_what_it_means_for_the_others(flow, on_failure, others):
    flow.source("lines", "text")
    flow.feed("lines", "7")
    flow.steps(f"{PICKY}  on_failure: {on_failure}\n{LINES}")
    bundle = flow.bundle()
    one_core = bundle.environment.model_copy(update={"engine": LocalEngine(kind="local", cores=1)})
    with pytest.raises(StepError, match="step 'picky' failed: matches value failed"):
        runner.run(flow.spark, bundle.model_copy(update={"environment": one_core}), "flow")
    assert (values(flow, "picky"), values(flow, "lines")) == ([], others)
    assert whats(flow) == ["run started", "step failed", "run failed"]


def test_steps_that_go_on_take_what_comes_and_fail_alone(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"{PICKY}  on_failure: continue\n{LINES}")
    bundle = triggered(flow.bundle(), Every(every="100 milliseconds"))
    rows = {"lines": 0, "picky": 0}

    def watch(event):
        if event.what == "step failed":
            flow.feed("lines", "three")
        if event.rows:
            rows[event.step] += event.rows
            if rows == {"lines": 1, "picky": 1}:
                flow.feed("lines", "2")
            elif event.step == "lines" and rows["lines"] == 3:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StepError, match="step 'picky' failed") as error:
        runner.run(flow.spark, bundle, "flow", watch=watch)
    assert len(error.value.problems) == 1
    assert (values(flow, "picky"), values(flow, "lines")) == (["one"], ["2", "one", "three"])
    assert whats(flow) == ["run started", "step failed", "run failed"]


def test_a_failed_step_leaves_the_rounds_and_the_others_go_on(flow):
    """Its source is of a kind that cannot tell whether something has come: it would be started without end."""
    place = flow.source("lines", "text")
    flow.other_source("anywhere", kind="files", format="text", path=f"{place}*")
    flow.feed("lines", "one")
    picky = PICKY.replace("source: lines", "source: anywhere")
    flow.steps(f"{picky}  on_failure: continue\n{LINES}")
    to_come = iter(["2", "three", "four"])  # the second makes picky fail, the others take a round each
    failures = []

    def watch(event):
        if event.what == "step failed":
            failures.append(event.step)
        elif event.step == "lines" and event.rows:
            line = next(to_come, None)
            if line:
                flow.feed("lines", line)
            else:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StepError, match="step 'picky' failed"):
        runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert values(flow, "lines") == ["2", "four", "one", "three"]
    assert failures == ["picky"]


def test_a_run_ends_when_all_its_steps_have_failed(flow):
    flow.source("lines", "text")
    flow.feed("lines", "3")
    flow.steps(f"{PICKY}  on_failure: continue\n")
    with pytest.raises(StepError, match="step 'picky' failed"):
        runner.run(flow.spark, flow.bundle(), "flow", follow=True)


def failing_at_the_end(rows):
    """Asks the run to stop in a batch, and fails when it waits for that batch's end."""
    if ARMED.is_set() and not rows.isStreaming:
        os.kill(os.getpid(), signal.SIGTERM)
        assert AWAITED.wait(60)
        raise RuntimeError("in the last batch")
    return rows


def test_a_batch_that_fails_while_the_run_waits_for_its_end_is_told(flow, monkeypatch):
    def stop_at_batch_end(of, running, before=supervisor.QuerySupervisor._stop_between_batches):
        AWAITED.set()
        before(of, running)

    monkeypatch.setattr(supervisor.QuerySupervisor, "_stop_between_batches", stop_at_batch_end)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"""
        last:
          layer: bronze
          reads: {{rows: {{source: lines}}}}
          transform: {__name__}:failing_at_the_end
          row_wise: true
          writes: {{table: last}}
        """)
    try:
        with pytest.raises(StepError, match="in the last batch"):
            runner.run(flow.spark, triggered(flow.bundle(), "default"), "flow", watch=lambda event: ARMED.set())
    finally:
        ARMED.clear()
    assert whats(flow) == ["run started", "step failed", "run failed"]


def test_a_sink_that_cannot_start_is_named(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {folder: out, format: nothing}}\n")
    with pytest.raises(StepError, match=r"step 'lines' cannot start: .*nothing"):
        flow.run()


@pytest.mark.parametrize(("trigger", "once"), [("default", True), ("once", False)])
def test_once_ends_after_what_is_there(flow, trigger, once):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LINES)
    runner.run(flow.spark, triggered(flow.bundle(), trigger), "flow", once=once)
    assert values(flow, "lines") == ["one"]
    assert whats(flow) == ["run started", "run ended"]


def test_tables_are_there_after_a_run_without_rows(flow):
    """Those who read them find them: in the same run, and whoever looks into the quarantine."""
    flow.source("lines", "json")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        """)
    run = flow.run()
    assert [run.rows("landed"), run.rows("copied"), run.quarantine("landed")] == [[], [], []]
    assert run.table("copied").columns == ["n"]


def test_a_quarantine_that_is_read_is_there_without_rows(flow):
    flow.source("lines", "json")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed_quarantine}}, writes: {table: copied}}
        """)
    assert flow.run().table("copied").columns[:2] == ["raw", "reasons"]


def test_a_step_may_come_to_read_the_quarantine_of_a_table_that_is_there(flow):
    flow.source("lines", "json")
    land = "land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}\n"
    copy = "copy: {layer: silver, reads: {lines: {table: landed_quarantine}}, writes: {table: copied}}\n"
    flow.steps(land)
    flow.feed("lines", {"n": 1})
    flow.run()
    flow.steps(land + copy)
    with pytest.raises(ConfigurationError, match="table 'landed_quarantine' does not exist yet"):
        flow.run("copy")
    flow.run("land")
    assert flow.run("copy").table("copied").columns[:2] == ["raw", "reasons"]


def test_steps_that_do_not_read_each_other_run_side_by_side_as_many_as_there_are_cores(flow):
    flow.source("lines", "text", maxFilesPerTrigger=1)
    for line in "abc":
        flow.feed("lines", line)
    one = "{layer: bronze, reads: {lines: {source: lines}}, writes: {table: %s}}"
    last = "{layer: silver, reads: {lines: {table: first}}, writes: {table: last}}"
    flow.steps("".join(f"{name}: {one % name}\n" for name in ("first", "second", "third")) + f"last: {last}\n")
    at_work = []

    def watch(event):
        if event.what == "batch":
            at_work.append({query.name.partition(".")[2] for query in flow.spark.streams.active})

    runner.run(flow.spark, flow.bundle(), "flow", watch=watch)
    assert max(map(len, at_work)) == 2
    assert not [together for together in at_work if together >= {"first", "last"}]
    assert [values(flow, table) for table in ("first", "second", "third", "last")] == [list("abc")] * 4


def counted(rows, /):
    """Counts in state of its own, which it forgets after an hour by the clock."""

    def count(key, frames, state):
        import pandas

        total = sum(map(len, frames)) + (state.get[0] if state.exists else 0)
        state.update((total,))
        state.setTimeoutDuration(3_600_000)
        yield pandas.DataFrame({"value": [key[0]], "total": [total]})

    return rows.groupBy("value").applyInPandasWithState(
        count, "value STRING, total INT", "total INT", "append", "ProcessingTimeTimeout"
    )


@pytest.mark.parametrize("trigger", ["available_now", "default"])
def test_a_run_with_timers_ends_at_the_first_batch_without_rows(flow, trigger):
    """Spark itself would do one batch after the other, without end."""
    flow.source("lines", "text")
    flow.steps(f"""
        {LINES}
        counts:
          layer: silver
          reads: {{lines: {{table: lines}}}}
          transform: {__name__}:counted
          writes: {{table: counts}}
        """)
    for _ in range(2):
        flow.feed("lines", "one")
        limit = threading.Timer(60, os.kill, (os.getpid(), signal.SIGTERM))
        limit.start()
        try:
            runner.run(flow.spark, triggered(flow.bundle(), trigger), "flow", once=True)
        finally:
            limit.cancel()  # else it would end the tests
        assert whats(flow)[-1] == "run ended"
    assert sorted(row["total"] for row in flow.read("counts")) == [1, 2]
    assert whats(flow) == ["run started", "run ended"] * 2


def test_a_batch_of_an_empty_file_does_not_end_a_run_with_timers(flow):
    flow.source("lines", "text", maxFilesPerTrigger=1)
    for line in ((), "one", (), "two", (), "three", (), "four"):
        flow.feed("lines", *([line] if line else []))
    flow.steps(f"""
        counts:
          layer: silver
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:counted
          writes: {{table: counts}}
        """)
    runner.run(flow.spark, flow.bundle(), "flow")
    assert [row["total"] for row in flow.read("counts")] == [1] * 4


BEGUN, GATE = threading.Event(), threading.Event()


def held(rows, /):
    """A row-wise transform whose batch waits."""
    if not rows.isStreaming:
        BEGUN.set()
        GATE.wait(60)
    return rows


def test_a_run_that_is_told_to_stop_finishes_its_batch(flow, monkeypatch):
    asked, stop_at_batch_end = threading.Event(), supervisor.QuerySupervisor._stop_between_batches
    spark = flow.directory / "checkpoints" / "flow" / "lines" / "1" / "spark"
    committed_when_stopped = []

    class Watched:
        def __init__(self, query):
            self._query = query

        def __getattr__(self, name):
            return getattr(self._query, name)

        def stop(self):
            committed_when_stopped.append((spark / "commits" / "0").exists())
            self._query.stop()

    def stop(of, running):
        asked.set()
        stop_at_batch_end(of, running._replace(query=Watched(running.query)))

    def tell():
        BEGUN.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)
        asked.wait(60)
        GATE.set()

    monkeypatch.setattr(supervisor.QuerySupervisor, "_stop_between_batches", stop)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"""
        lines:
          layer: bronze
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:held
          row_wise: true
          writes: {{table: lines}}
        """)
    teller = threading.Thread(target=tell)
    teller.start()
    runner.run(flow.spark, flow.bundle(), "flow")
    teller.join()
    assert committed_when_stopped and all(committed_when_stopped)
    assert (values(flow, "lines"), whats(flow)) == (["one"], ["run started", "run stopped"])


def test_a_static_table_is_read_anew_for_each_batch(flow):
    flow.source("rows")
    flow.source("dims")
    flow.feed("rows", {"k": "a"})
    flow.feed("dims", {"k": "a", "v": "old", "at": 1})
    flow.steps("""
        dims:
          layer: bronze
          reads: {dims: {source: dims, schema: "k STRING, v STRING, at INT"}}
          writes: {table: dims, mode: upsert, keys: [k], sequence: at}
        land: {layer: bronze, reads: {rows: {source: rows, schema: k STRING}}, writes: {table: landed}}
        join:
          layer: silver
          reads: {rows: {table: landed}, dims: {table: dims, static: true}}
          transform: headrace.transforms.silver:join_static
          with: {keys: [k], how: left}
          writes: {table: joined}
        """)
    flow.run("dims")
    joined = []

    def watch(event):
        if not event.rows:
            return
        if event.step == "dims":
            flow.feed("rows", {"k": "a"})
        elif event.step == "join":
            joined.append(event.batch)
            if len(joined) == 1:
                flow.feed("dims", {"k": "a", "v": "new", "at": 2})
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, triggered(flow.bundle(), "default"), "flow", watch=watch)
    assert sorted(row["v"] for row in flow.read("joined")) == ["new", "old"]


def test_a_step_that_another_run_has_is_refused_before_anything_is_written(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LINES)
    lock = Lock(flow.spark, str(flow.directory / "checkpoints" / "flow" / "lines"), "lines")
    with pytest.raises(GuardError, match="step 'lines' is already run by process"):
        flow.run()
    assert (flow.read("lines"), whats(flow)) == ([], ["run started", "run failed"])
    lock.release()
    assert len(flow.run().rows("lines")) == 1
