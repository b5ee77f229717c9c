"""Signals at any moment: no process is left, no traceback is printed, and the exit code tells the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from headrace.checkpoints import stop_request
from headrace.errors import UnfinishedBatchError
from headrace.interrupts import Interrupted
from headrace.runtime import follow_loop, runner, supervisor
from headrace.runtime.events import read_events
from processes import _alive, copy_bundle, headrace, wait_until

# ── A batch that never ends ───────────────────────────────────────────────────────────────────────────


def waiting(rows, /, *, until):
    """Wait in a Spark task until there is a file."""

    @F.udf("string")
    def wait(value):
        Path(f"{until}.begun").touch()
        while not Path(until).exists():
            time.sleep(0.01)
        return value

    return rows.select(wait("value").alias("value"))


@pytest.fixture
def hanging(flow):
    """A step whose batch hangs until the test is over."""
    gate = flow.directory / "gate"
    flow.source("lines", "text")
    flow.steps(f"""
        held:
          layer: bronze
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:waiting
          with: {{until: {gate}}}
          writes: {{table: held}}
        """)
    yield flow
    gate.touch()
    # An interrupted call has cut off the connection, and with it the JVM's thread that knew the active session.
    spark: Any = flow.spark
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


def run(flow, *, grace, follow=False):
    if not follow:
        flow.feed("lines", "one")
    bundle = flow.bundle()
    environment = bundle.environment.model_copy(update={"stop_grace": grace})
    runner.run(flow.spark, bundle.model_copy(update={"environment": environment}), "flow", follow=follow)


def when_the_batch_has_begun(flow, act):
    def wait():
        wait_until((flow.directory / "gate.begun").exists, "the batch to begin")
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_batch_without_progress_is_ended_after_stop_grace(hanging, monkeypatch):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    monkeypatch.setattr(stop_request, "POLL_INTERVAL_S", 0.01)
    file = Path(stop_request.request_file(hanging.bundle().environment, "flow"))
    thread = when_the_batch_has_begun(hanging, lambda: stop_request.write_request(file, by="test", within=60))
    with pytest.raises(UnfinishedBatchError) as error:
        run(hanging, grace="1 second")
    thread.join()
    (problem,) = error.value.problems
    assert problem.message == (
        "step 'held' was ended in batch 0: none of its Spark tasks finished within 1 second (stop_grace)"
    )
    assert "it repeats the batch" in problem.fix
    last = list(read_events(hanging.bundle().directory, "flow"))[-1]
    assert (last.what, last.message) == ("run failed", problem.message)
    assert hanging.read("held") == []


def test_a_signal_ends_it_as_a_signal(hanging, monkeypatch):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    thread = when_the_batch_has_begun(hanging, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted, match="Error: step 'held' was ended in batch 0: none of its Spark tasks finished"):
        run(hanging, grace="1 second")
    thread.join()


@pytest.mark.parametrize("follow", [False, True])
def test_a_second_signal_waits_for_nothing(hanging, monkeypatch, follow):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    stopping = threading.Event()
    stop_at_batch_end = supervisor.QuerySupervisor._stop_between_batches

    def stop(of, running):
        stopping.set()
        stop_at_batch_end(of, running)

    def signal_twice():
        os.kill(os.getpid(), signal.SIGINT)
        assert stopping.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    def follow_with_news(*given, before=follow_loop.follow):
        hanging.feed("lines", "one")
        before(*given)

    monkeypatch.setattr(follow_loop, "follow", follow_with_news)
    monkeypatch.setattr(supervisor.QuerySupervisor, "_stop_between_batches", stop)
    thread = when_the_batch_has_begun(hanging, signal_twice)
    with pytest.raises(Interrupted, match="step 'held' was ended in batch 0; the next run repeats it"):
        run(hanging, grace="1 hour", follow=follow)
    thread.join()


def slow(rows, /):
    """Two tasks of a second each, one after the other: longer than stop_grace, but with progress."""

    @F.udf("string")
    def sleep(value):
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            pass
        return value

    return rows.repartition(8, "value").select(sleep("value").alias("value"))


def test_a_long_batch_whose_tasks_finish_is_waited_for(flow, monkeypatch):
    monkeypatch.setattr(stop_request, "POLL_INTERVAL_S", 0.01)
    flow.source("lines", "text")
    flow.feed("lines", *"abcdefg")
    flow.steps(f"""
        slow:
          layer: bronze
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:slow
          writes: {{table: slow}}
          settings: {{spark.sql.shuffle.partitions: 8}}
        """)
    file = Path(stop_request.request_file(flow.bundle().environment, "flow"))
    stopping = threading.Event()
    offsets = flow.directory / "checkpoints/flow/slow/1/spark/offsets/0"

    def ask():
        wait_until(offsets.exists, "the batch to begin")
        stop_request.write_request(file, by="test", within=60)
        stopping.set()

    thread = threading.Thread(target=ask)
    thread.start()
    run(flow, grace="3 seconds")
    thread.join()
    assert sorted(row["value"] for row in flow.read("slow")) == [*"abcdefg", "one"]


# ── Processes ─────────────────────────────────────────────────────────────────────────────────────────


def started(bundle: Path) -> bool:
    return (bundle / "output.txt").read_text() != ""


def launching(bundle: Path) -> bool:
    """Whether Java has been started, which answers a second later."""
    return bool(list((bundle / ".headrace/local/logs").glob("spark-*.log")))


def connected(bundle: Path) -> bool:
    """Whether Spark is being set up in the JVM."""
    return any((bundle / ".headrace/local/scratch").glob("*"))


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, launching), (signal.SIGHUP, launching), (signal.SIGTERM, connected), (signal.SIGINT, started)],
)
def test_a_signal_while_spark_starts_leaves_no_process_and_no_traceback(tmp_path, number, moment):
    bundle = copy_bundle(tmp_path / "bundle", orders=20, customers=2, files=1, pace=10)
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_until(lambda: moment(bundle), moment.__name__)
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
        wait_until(lambda: not _alive(process.pid), "all processes of the run to be gone")
    output = (bundle / "output.txt").read_text()
    assert "Traceback" not in output
    assert "Exception" not in output
    assert list(read_events(bundle / ".headrace" / "local", "orders"))[-1].what == "run failed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_modules_are_imported_prints_nothing(tmp_path, number):
    """At the first import that the command line needs."""
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from headrace.__main__ import run; run()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, b"", b"")


def test_nohup_is_respected():
    code = "from headrace import interrupts; print([int(number) for number in interrupts.SIGNALS])"
    ignore = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, preexec_fn=ignore)
    assert printed.stdout == b"[2, 15]\n"
