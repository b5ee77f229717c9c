"""Supervised queries: failed steps, stops between two batches, and queries with timers."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from headrace.config.models import Every, LocalEngine
from headrace.errors import StepError
from headrace.runtime import runner
from headrace.runtime.supervisor import QuerySupervisor
from runs import LINES, PICKY, recorded, values, with_trigger

# ── Failed steps ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("on_failure", "others"), [("stop", []), ("continue", ["7"])])
def test_on_failure_decides_whether_other_steps_continue(flow, on_failure, others):
    flow.source("lines", "text")
    flow.feed("lines", "7")
    flow.steps(f"{PICKY}  on_failure: {on_failure}\n{LINES}")
    bundle = flow.bundle()
    one_core = bundle.environment.model_copy(update={"engine": LocalEngine(kind="local", cores=1)})
    with pytest.raises(StepError, match="step 'picky' failed: matches value failed"):
        runner.run(flow.spark, bundle.model_copy(update={"environment": one_core}), "flow")
    assert (values(flow, "picky"), values(flow, "lines")) == ([], others)
    assert recorded(flow) == ["run started", "step failed", "run failed"]


def test_unbounded_steps_read_new_rows_and_fail_alone(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"{PICKY}  on_failure: continue\n{LINES}")
    bundle = with_trigger(flow.bundle(), Every(every="100 milliseconds"))
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
    assert recorded(flow) == ["run started", "step failed", "run failed"]


def test_failed_step_leaves_the_follow_loop_and_the_others_continue(flow):
    """The fingerprint of its source is unknown, so the loop would start it again in each round."""
    directory = flow.source("lines", "text")
    flow.other_source("anywhere", kind="files", format="text", path=f"{directory}*")
    flow.feed("lines", "one")
    picky = PICKY.replace("source: lines", "source: anywhere")
    flow.steps(f"{picky}  on_failure: continue\n{LINES}")
    more = iter(["2", "three", "four"])  # the first makes picky fail; each takes a round
    failures = []

    def watch(event):
        if event.what == "step failed":
            failures.append(event.step)
        elif event.step == "lines" and event.rows:
            line = next(more, None)
            if line:
                flow.feed("lines", line)
            else:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StepError, match="step 'picky' failed"):
        runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert values(flow, "lines") == ["2", "four", "one", "three"]
    assert failures == ["picky"]


def test_run_that_follows_ends_when_all_its_steps_have_failed(flow):
    flow.source("lines", "text")
    flow.feed("lines", "3")
    flow.steps(f"{PICKY}  on_failure: continue\n")
    with pytest.raises(StepError, match="step 'picky' failed"):
        runner.run(flow.spark, flow.bundle(), "flow", follow=True)


def test_sink_that_cannot_start_is_an_error(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {folder: out, format: nothing}}\n")
    with pytest.raises(StepError, match=r"step 'lines' cannot start: .*nothing"):
        flow.run()


# ── Stops between two batches ─────────────────────────────────────────────────────────────────────────

STARTED, STOPPING = threading.Event(), threading.Event()


def failing_in_the_last_batch(rows):
    """Ask the run to stop in a batch, and fail once the run waits for the end of that batch."""
    if STARTED.is_set() and not rows.isStreaming:
        os.kill(os.getpid(), signal.SIGTERM)
        assert STOPPING.wait(60)
        raise RuntimeError("in the last batch")
    return rows


def test_failure_in_the_last_batch_is_reported(flow, monkeypatch):
    stop_between_batches = QuerySupervisor._stop_between_batches

    def stop(supervisor, running):
        STOPPING.set()
        stop_between_batches(supervisor, running)

    monkeypatch.setattr(QuerySupervisor, "_stop_between_batches", stop)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"""
        last:
          layer: bronze
          reads: {{rows: {{source: lines}}}}
          transform: {__name__}:failing_in_the_last_batch
          row_wise: true
          writes: {{table: last}}
        """)
    try:
        with pytest.raises(StepError, match="in the last batch"):
            runner.run(flow.spark, with_trigger(flow.bundle(), "default"), "flow", watch=lambda event: STARTED.set())
    finally:
        STARTED.clear()
    assert recorded(flow) == ["run started", "step failed", "run failed"]


IN_BATCH, GATE = threading.Event(), threading.Event()


def waiting(rows, /):
    """Wait in the batch, as a row-wise transform."""
    if not rows.isStreaming:
        IN_BATCH.set()
        GATE.wait(60)
    return rows


def test_stopped_run_finishes_its_batch(flow, monkeypatch):
    is_stopping, stop_between_batches = threading.Event(), QuerySupervisor._stop_between_batches
    spark = flow.directory / "checkpoints" / "flow" / "lines" / "1" / "spark"
    committed_when_stopped = []

    class ObservedQuery:
        def __init__(self, query):
            self._query = query

        def __getattr__(self, name):
            return getattr(self._query, name)

        def stop(self):
            committed_when_stopped.append((spark / "commits" / "0").exists())
            self._query.stop()

    def stop(supervisor, running):
        is_stopping.set()
        stop_between_batches(supervisor, running._replace(query=ObservedQuery(running.query)))

    def interrupt_batch():
        IN_BATCH.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)
        is_stopping.wait(60)
        GATE.set()

    monkeypatch.setattr(QuerySupervisor, "_stop_between_batches", stop)
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(f"""
        lines:
          layer: bronze
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:waiting
          row_wise: true
          writes: {{table: lines}}
        """)
    thread = threading.Thread(target=interrupt_batch)
    thread.start()
    runner.run(flow.spark, flow.bundle(), "flow")
    thread.join()
    assert committed_when_stopped and all(committed_when_stopped)
    assert (values(flow, "lines"), recorded(flow)) == (["one"], ["run started", "run stopped"])


# ── Timers ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trigger", ["available_now", "default"])
def test_bounded_run_with_timers_ends_at_the_first_batch_without_rows(flow, trigger):
    """Spark itself would run one batch after the other, without end."""
    flow.source("lines", "text")
    flow.steps(f"""
        {LINES}
        counts:
          layer: silver
          reads: {{lines: {{table: lines}}}}
          transform: runs:count_with_timers
          writes: {{table: counts}}
        """)
    for _ in range(2):
        flow.feed("lines", "one")
        limit = threading.Timer(60, os.kill, (os.getpid(), signal.SIGTERM))
        limit.start()
        try:
            runner.run(flow.spark, with_trigger(flow.bundle(), trigger), "flow", once=True)
        finally:
            limit.cancel()  # otherwise the signal would end the tests
        assert recorded(flow)[-1] == "run ended"
    assert sorted(row["total"] for row in flow.read("counts")) == [1, 2]
    assert recorded(flow) == ["run started", "run ended"] * 2


def test_batch_of_an_empty_file_does_not_end_a_run_with_timers(flow):
    flow.source("lines", "text", maxFilesPerTrigger=1)
    for line in ((), "one", (), "two", (), "three", (), "four"):
        flow.feed("lines", *([line] if line else []))
    flow.steps("""
        counts:
          layer: silver
          reads: {lines: {source: lines}}
          transform: runs:count_with_timers
          writes: {table: counts}
        """)
    runner.run(flow.spark, flow.bundle(), "flow")
    assert [row["total"] for row in flow.read("counts")] == [1] * 4
