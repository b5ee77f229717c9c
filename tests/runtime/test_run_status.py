"""The status of a pipeline, from the events of its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

from headrace.liveness import release
from headrace.runtime import recorder as recorder_module
from headrace.runtime.batch_report import RecordedStep
from headrace.runtime.events import Event, events_file, read_events
from headrace.runtime.recorder import Recorder
from headrace.runtime.run_status import status_of


def record(directory, *events):
    recorder = Recorder(events_file(directory, "p"), "p", lambda event: None)
    for event in events:
        recorder.record(*event)


def record_in_another_process(directory, *, number="os.getpid()", end):
    """Record the start of a run in a process of its own, which then ends without recording its end."""
    code = f"""
import os
from pathlib import Path
from headrace.runtime.events import events_file
from headrace.runtime.recorder import Recorder
number = {number}
os.getpid, own = lambda: number, os.getpid()
Recorder(events_file(Path({str(directory)!r}), "p"), "p", lambda event: None).record("run started")
{end}
"""
    subprocess.run([sys.executable, "-c", code], check=False)


def test_pipeline_that_never_ran(tmp_path):
    status = status_of(tmp_path, "p", ["s"])
    assert status.description == "never run"
    (step,) = status.steps
    assert (step.name, step.batches, step.rows, step.at, step.watermark, step.lag) == ("s", 0, 0, "", None, {})


def test_last_events_of_the_run_and_of_each_step_survive_rotation(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "ROTATE_AT_BYTES", 6_000)
    recorder = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    recorder.record("run started")
    (started,) = read_events(tmp_path, "p")
    report = {"runId": "r", "timestamp": "now", "numInputRows": 10, "sources": [], "stateOperators": []}
    for step in ("quiet", "busy"):
        recorder.add_query(f"p.{step}", RecordedStep(step, str(tmp_path), ()))
    recorder.record_batch({**report, "name": "p.quiet", "batchId": 0})
    recorder.record("step failed", "broken", "no disk")
    for number in range(30):
        recorder.record_batch({**report, "name": "p.busy", "batchId": number})
    status = status_of(tmp_path, "p", ["quiet", "broken", "busy"])
    assert (status.is_running, status.description) == (True, f"running since {started.at}, process {os.getpid()}")
    quiet, broken, busy = status.steps
    assert (quiet.batches, quiet.rows, broken.failure) == (1, 10, "no disk")
    assert 0 < busy.batches < 30
    assert status.since > started.at


def test_totals_count_repeated_batches_once_and_continue_after_a_reset(tmp_path):
    """After the reset, another query counts its batches from 0."""
    recorder = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    recorder.add_query("p.s", RecordedStep("s", str(tmp_path), ()))
    report = {"name": "p.s", "runId": "r", "timestamp": "now", "numInputRows": 10, "sources": [], "stateOperators": []}
    for query, batch in (("before", 0), ("before", 1), ("before", 1), ("after", 0)):
        recorder.record_batch({**report, "id": query, "batchId": batch})
    (step,) = status_of(tmp_path, "p", ["s"]).steps
    assert (step.batches, step.rows) == (3, 30)


def test_run_beside_one_that_has_ended_is_running(tmp_path):
    first = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    first.record("run started")
    second = Recorder(events_file(tmp_path, "p"), "p", lambda event: None)
    second._run = "another"
    second.record("run started")
    second.record("run ended")
    assert status_of(tmp_path, "p", []).is_running
    first.record("run ended")
    assert not status_of(tmp_path, "p", []).is_running


def test_run_that_ended_with_the_totals_of_its_steps(ran):
    _, run = ran
    status = status_of(run.bundle.run_files_directory, "flow", ["land", "count", "new"])
    assert status.description == f"run ended at {run.events[-1].at}"
    land, count, new = status.steps
    assert (land.rows, land.late, land.duplicates, land.quarantined) == (9, 1, 1, {"malformed": 1})
    assert land.batches == sum(event.step == "land" for event in run.events)
    assert (count.watermark, count.state_rows) == ("2026-01-01T12:09:00.000Z", 2)
    assert (new.batches, new.failure) == (0, "")


def test_killed_run_is_not_running_although_its_process_number_is_in_use(tmp_path):
    """As in containers, where each run is process 1: the lock of the run shows that it died."""
    record_in_another_process(tmp_path, number="os.getppid()", end="os._exit(1)")
    status = status_of(tmp_path, "p", [])
    assert (status.is_running, "the process died" in status.description) == (False, True)
    record(tmp_path, ["run started"], ["run ended"])
    assert not status_of(tmp_path, "p", []).is_running


def test_active_run_has_its_process_and_start(tmp_path):
    record(tmp_path, ["run started"])
    assert status_of(tmp_path, "p", []).description.endswith(f", process {os.getpid()}")
    assert status_of(tmp_path, "p", []).description.startswith("running since ")


def test_failed_run_has_its_cause_and_the_failed_step(tmp_path):
    record(tmp_path, ["run started"], ["step failed", "s", "no more disk"], ["run failed", "", "step 's' failed"])
    status = status_of(tmp_path, "p", ["s", "other"])
    assert status.description.startswith("run failed at ")
    assert status.description.endswith(": step 's' failed")
    assert [step.failure for step in status.steps] == ["no more disk", ""]
    batch = Event("batch", "now", "p", "r", 1, "s", batch=0, rows=2, dropped={"not_null id": 1}, warned={"rule ok": 2})
    with events_file(tmp_path, "p").open("a") as lines:
        lines.write(json.dumps(asdict(batch)) + "\n")
    (step, _) = status_of(tmp_path, "p", ["s", "other"]).steps
    assert (step.failure, step.rows, step.dropped, step.warned) == ("", 2, {"not_null id": 1}, {"rule ok": 2})


def test_warning_does_not_hide_a_failed_step(tmp_path):
    events = [Event("step failed", "1", "p", "r", 1, "s", message="broken"), Event("warning", "2", "p", "r", 1, "s")]
    file = events_file(tmp_path, "p")
    file.parent.mkdir()
    file.write_text("".join(json.dumps(asdict(event)) + "\n" for event in events))
    assert status_of(tmp_path, "p", ["s"]).steps[0].failure == "broken"


def test_killed_run_is_reported_as_died(tmp_path):
    record_in_another_process(tmp_path, end="os.kill(own, 9)")
    assert status_of(tmp_path, "p", []).description.startswith("the process died; the run had started at ")


def test_process_of_another_user_counts_as_running(tmp_path, monkeypatch):
    """On a file system without locks, a run has no lock file, and the number of its process decides."""
    monkeypatch.setattr("os.getpid", lambda: 1)
    record(tmp_path, ["run started"])
    for file in (tmp_path / "events").glob("*.alive"):
        release(file)
    monkeypatch.setattr("os.kill", lambda process, number: (_ for _ in ()).throw(PermissionError))
    assert status_of(tmp_path, "p", []).description.endswith(", process 1")
