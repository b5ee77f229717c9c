"""The state of a pipeline, told from what its runs have recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from headrace.checkpoints import stop_request
from headrace.config.load import load_bundle
from headrace.errors import DataError, StepError
from headrace.liveness import release
from headrace.runtime import events
from headrace.runtime import recorder as recorder_module
from headrace.runtime.events import Event, events_file
from headrace.runtime.recorder import RecordedStep, Recorder
from headrace.runtime.run_status import status_of
from headrace.runtime.stop_run import stop_run


def record(directory, *whats):
    recorder = Recorder(events_file(directory, "p"), "p", lambda event: None)
    for what in whats:
        recorder.record(*what)


def test_a_pipeline_that_never_ran(tmp_path):
    status = status_of(tmp_path, "p", ["s"])
    assert status.run == "never run"
    (step,) = status.steps
    assert (step.step, step.batches, step.rows, step.at, step.watermark, step.lag) == ("s", 0, 0, "", None, {})


def test_a_run_that_goes_on_for_long_is_still_known(tmp_path, monkeypatch):
    """The oldest events go, but what is the last of the run and of each step."""
    monkeypatch.setattr(recorder_module, "ROTATE_AT_BYTES", 6000)
    recorder = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    recorder.record("run started")
    (begun,) = events.read_events(tmp_path, "p")
    report = {"runId": "r", "timestamp": "now", "numInputRows": 10, "sources": [], "stateOperators": []}
    for step in ("quiet", "busy"):
        recorder.add_query(f"p.{step}", RecordedStep(step, str(tmp_path), ()))
    recorder.record_batch({**report, "name": "p.quiet", "batchId": 0})
    recorder.record("step failed", "broken", "no disk")
    for number in range(30):
        recorder.record_batch({**report, "name": "p.busy", "batchId": number})
    status = status_of(tmp_path, "p", ["quiet", "broken", "busy"])
    assert (status.is_running, status.run) == (True, f"running since {begun.at}, process {os.getpid()}")
    quiet, broken, busy = status.steps
    assert (quiet.batches, quiet.rows, broken.failure) == (1, 10, "no disk")
    assert 0 < busy.batches < 30
    assert status.since > begun.at


def test_a_run_beside_one_that_has_ended_is_running(tmp_path):
    beside = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    beside.record("run started")
    other = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    other._run = "another"
    other.record("run started")
    other.record("run ended")
    assert status_of(tmp_path, "p", []).is_running
    beside.record("run ended")
    assert not status_of(tmp_path, "p", []).is_running


def test_a_run_that_ended_and_what_its_steps_did(ran):
    _, run = ran
    status = status_of(run.bundle.directory, "flow", ["land", "count", "new"])
    assert status.run == f"run ended at {run.events[-1].at}"
    land, count, new = status.steps
    assert (land.rows, land.late, land.duplicates, land.quarantined) == (9, 1, 1, {"malformed": 1})
    assert land.batches == sum(event.step == "land" for event in run.events)
    assert (count.watermark, count.state_rows) == ("2026-01-01T12:09:00.000Z", 2)
    assert (new.batches, new.failure) == (0, "")


def test_a_killed_run_is_told_from_another_process_of_its_number(tmp_path):
    """As of a container, where each run is process 1; what it held shows that it is gone."""
    code = f"""
import os
from pathlib import Path
from headrace.runtime.events import events_file
from headrace.runtime.recorder import Recorder
os.getpid = lambda: {os.getppid()}
Recorder(events_file(Path({str(tmp_path)!r}), "p"), "p", lambda event: None).record("run started")
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    status = status_of(tmp_path, "p", [])
    assert (status.is_running, "the process died" in status.run) == (False, True)
    record(tmp_path, ["run started"], ["run ended"])
    assert not status_of(tmp_path, "p", []).is_running


def test_a_run_that_goes_on(tmp_path):
    record(tmp_path, ["run started"])
    assert status_of(tmp_path, "p", []).run.endswith(f", process {os.getpid()}")
    assert status_of(tmp_path, "p", []).run.startswith("running since ")


def test_a_run_that_failed_says_why_and_which_step(tmp_path):
    record(tmp_path, ["run started"], ["step failed", "s", "no more disk"], ["run failed", "", "step 's' failed"])
    status = status_of(tmp_path, "p", ["s", "other"])
    assert status.run.startswith("run failed at ")
    assert status.run.endswith(": step 's' failed")
    assert [step.failure for step in status.steps] == ["no more disk", ""]
    batch = Event("batch", "now", "p", "r", 1, "s", batch=0, rows=2, dropped={"not_null id": 1}, warned={"rule ok": 2})
    with events_file(tmp_path, "p").open("a") as lines:
        lines.write(json.dumps(asdict(batch)) + "\n")
    (step, _) = status_of(tmp_path, "p", ["s", "other"]).steps
    assert (step.failure, step.rows, step.dropped, step.warned) == ("", 2, {"not_null id": 1}, {"rule ok": 2})


def test_a_run_whose_process_was_killed(tmp_path):
    code = f"""
import os
from pathlib import Path
from headrace.runtime.events import events_file
from headrace.runtime.recorder import Recorder
Recorder(events_file(Path({str(tmp_path)!r}), "p"), "p", lambda event: None).record("run started")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    said = status_of(tmp_path, "p", []).run
    assert said.startswith("the process died; the run had started at ")


def test_a_process_of_somebody_else_counts_as_running(tmp_path, monkeypatch):
    """Where a file system has no locks, so that there is no file."""
    monkeypatch.setattr("os.getpid", lambda: 1)
    record(tmp_path, ["run started"])
    for file in (tmp_path / "events").glob("*.alive"):
        release(file)
    monkeypatch.setattr("os.kill", lambda process, number: (_ for _ in ()).throw(PermissionError))
    assert status_of(tmp_path, "p", []).run.endswith(", process 1")


def test_a_run_that_does_not_stop_in_time_is_told_and_keeps_the_request(write_bundle):
    bundle = load_bundle(write_bundle({}))
    record(bundle.directory, ["run started"])  # by this process, which watches for no request
    said = []
    with pytest.raises(StepError, match="pipeline 'p' has not stopped within 0 seconds: running since"):
        stop_run(bundle, "p", within=0, report=said.append)
    assert said == ["pipeline p: asked to stop between two batches …"]
    assert Path(stop_request.request_file(bundle.environment, "p")).exists()


def test_a_run_with_checkpoints_in_an_object_store_is_stopped_by_a_signal(write_bundle):
    local = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: s3://b/c\nsources: {ticks: {kind: rate}}\n"
    bundle = load_bundle(write_bundle({"conf/local.yml": local}))
    record(bundle.directory, ["run started"])
    with pytest.raises(DataError, match="pipeline 'p' cannot be asked to stop: running since") as error:
        stop_run(bundle, "p", within=0, report=print)
    assert "SIGTERM" in error.value.problems[0].fix


def test_a_pipeline_that_does_not_run_cannot_be_stopped(write_bundle):
    bundle = load_bundle(write_bundle({}))
    with pytest.raises(DataError, match="pipeline 'p' is not running in environment 'local': never run"):
        stop_run(bundle, "p", within=0, report=print)
    assert not Path(stop_request.request_file(bundle.environment, "p")).exists()
