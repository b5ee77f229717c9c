"""Signals at any time: no process is left running, no traceback is printed, and the exit code is 128 + signal."""

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
from headrace.interrupts import Interrupted, unmasked
from headrace.runtime import follow_loop, runner, supervisor
from headrace.runtime.events import read_events
from processes import copy_bundle, group_exists, headrace, wait_until


@pytest.fixture(autouse=True)
def default_hangup():
    """Let child processes handle SIGHUP, also if the tests run under nohup."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, previous)


# ── A batch that never ends ───────────────────────────────────────────────────────────────────────────


def waiting(rows, /, *, until):
    """Wait in a Spark task until the file exists."""

    @F.udf("string")
    def wait(value):
        Path(f"{until}.started").touch()
        while not Path(until).exists():
            time.sleep(0.01)
        return value

    return rows.select(wait("value").alias("value"))


@pytest.fixture
def hanging(flow):
    """A pipeline whose batch hangs until the end of the test."""
    gate = flow.directory / "gate"
    flow.source("lines", "text")
    flow.steps(f"""
        hanging:
          layer: bronze
          reads: {{lines: {{source: lines}}}}
          transform: {__name__}:waiting
          with: {{until: {gate}}}
          writes: {{table: hanging}}
        """)
    yield flow
    gate.touch()
    # An interrupted call closes its connection, and thereby ends the JVM thread that has the active session.
    spark: Any = flow.spark
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


def run(flow, *, grace, follow=False):
    if not follow:
        flow.feed("lines", "one")
    bundle = flow.bundle()
    environment = bundle.environment.model_copy(update={"stop_grace": grace})
    runner.run(flow.spark, bundle.model_copy(update={"environment": environment}), "flow", follow=follow)


def after_batch_start(flow, action):
    """Call the action in a thread when the batch has started."""

    def wait():
        wait_until((flow.directory / "gate.started").exists, "the batch to start")
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_batch_without_progress_is_ended_after_stop_grace(hanging, monkeypatch):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    monkeypatch.setattr(stop_request, "POLL_INTERVAL_S", 0.01)
    file = Path(stop_request.request_file(hanging.bundle().environment, "flow"))
    thread = after_batch_start(hanging, lambda: stop_request.write_request(file, by="test", within=60))
    with pytest.raises(UnfinishedBatchError) as error:
        run(hanging, grace="1 second")
    thread.join()
    (problem,) = error.value.problems
    assert problem.message == (
        "step 'hanging' was ended in batch 0: none of its Spark tasks finished within 1 second (stop_grace)"
    )
    assert "it repeats the batch" in problem.fix
    last = list(read_events(hanging.bundle().run_files_directory, "flow"))[-1]
    assert (last.what, last.message) == ("run failed", problem.message)
    assert hanging.read("hanging") == []


def test_signal_during_a_stuck_batch_raises_interrupted(hanging, monkeypatch):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    thread = after_batch_start(hanging, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(
        Interrupted, match="Error: step 'hanging' was ended in batch 0: none of its Spark tasks finished"
    ):
        run(hanging, grace="1 second")
    thread.join()


@pytest.mark.parametrize("follow", [False, True])
def test_second_signal_ends_the_batch_immediately(hanging, monkeypatch, follow):
    monkeypatch.setattr(supervisor, "ABANDON_LIMIT_S", 0.5)
    stopping = threading.Event()
    stop_at_batch_end = supervisor.QuerySupervisor._stop_between_batches

    def stop(self, running):
        stopping.set()
        stop_at_batch_end(self, running)

    def signal_twice():
        os.kill(os.getpid(), signal.SIGINT)
        assert stopping.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    def follow_with_new_file(*arguments, follow=follow_loop.follow):
        hanging.feed("lines", "one")
        follow(*arguments)

    monkeypatch.setattr(follow_loop, "follow", follow_with_new_file)
    monkeypatch.setattr(supervisor.QuerySupervisor, "_stop_between_batches", stop)
    thread = after_batch_start(hanging, signal_twice)
    with pytest.raises(Interrupted, match="step 'hanging' was ended in batch 0; the next run repeats it"):
        run(hanging, grace="1 hour", follow=follow)
    thread.join()


def slow(rows, /):
    """Run tasks of 0.8 s each that together take longer than stop_grace, while each of them is progress."""

    @F.udf("string")
    def sleep(value):
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            pass
        return value

    return rows.repartition(8, "value").select(sleep("value").alias("value"))


def test_long_batch_with_progress_finishes(flow, monkeypatch):
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

    def request_stop():
        wait_until(offsets.exists, "the batch to start")
        stop_request.write_request(file, by="test", within=60)
        stopping.set()

    thread = threading.Thread(target=request_stop)
    thread.start()
    run(flow, grace="3 seconds")
    thread.join()
    assert sorted(row["value"] for row in flow.read("slow")) == [*"abcdefg", "one"]


# ── Processes ─────────────────────────────────────────────────────────────────────────────────────────


def announced(bundle: Path) -> bool:
    """Return whether the start of the run has been recorded, which comes before the start of Spark."""
    return any(read_events(bundle / ".headrace" / "local", "orders"))


def launching(bundle: Path) -> bool:
    """Return whether Java has been started. It takes another second until it answers."""
    return bool(list((bundle / ".headrace/local/logs").glob("spark-*.log")))


def connected(bundle: Path) -> bool:
    """Return whether Spark is being initialized in the JVM."""
    return any((bundle / ".headrace/local/scratch").glob("*"))


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, launching), (signal.SIGHUP, launching), (signal.SIGTERM, connected), (signal.SIGINT, announced)],
)
def test_signal_during_start_leaves_no_process_and_no_traceback(tmp_path, number, moment):
    bundle = copy_bundle(tmp_path / "bundle", orders=20, customers=2, files=1, pace=10)
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_until(lambda: moment(bundle), moment.__name__)
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
        wait_until(lambda: not group_exists(process.pid), "all processes of the run to end")
    output = (bundle / "output.txt").read_text()
    assert "Traceback" not in output
    assert "Exception" not in output
    assert list(read_events(bundle / ".headrace" / "local", "orders"))[-1].what == "run failed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_imports_prints_nothing(tmp_path, number):
    """Send the signal at the first import of the command line."""
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from headrace.__main__ import run; run()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, b"", b"")


def test_nohup_is_respected():
    code = "from headrace import interrupts; print([int(number) for number in interrupts.SIGNALS])"
    ignore = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, preexec_fn=ignore)
    assert result.stdout == b"[2, 15]\n"


def test_interrupt_that_an_error_of_py4j_hides_is_raised():
    with pytest.raises(Interrupted, match=r"^signal$"), unmasked():
        try:
            raise Interrupted("signal")
        except Interrupted:
            raise OSError(107, "Transport endpoint is not connected")  # noqa: B904
    with pytest.raises(OSError, match="disk full"), unmasked():
        raise OSError("disk full")
