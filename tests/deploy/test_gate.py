"""The gate of a promotion: what proves that a job works with its release."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from deployments import write_tiny
from headrace.checkpoints.heartbeat import Heartbeat
from headrace.deploy.gate import require_deployed, require_proven
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError

PATH = ("/r/releases/a1/wheels/a.whl",)
RUNNING = Run(7, "RUNNING", paths=PATH)
SUCCEEDED = Run(6, "TERMINATED", "SUCCESS", paths=PATH)
FAILED = Run(5, "TERMINATED", "FAILED", "division by zero", paths=PATH)
BEAT = Heartbeat(
    "p",
    "land",
    "",
    "run 7",
    "2026-01-01T12:00:00+00:00",
    at="2026-01-01T12:10:05+00:00",
    batch=40,
    rows=1200,
    first_batch_at="2026-01-01T12:00:05+00:00",
)


@pytest.fixture
def judge(tiny, workspace, monkeypatch):
    """A function that deploys, and judges job `live` by these runs and this heartbeat."""
    write_tiny(tiny.root, {"resources/nightly.job.yml": None})
    tiny.deploy()
    state, target = tiny.state(), tiny.target()
    (file,) = workspace.directory.rglob("heartbeat.json")

    def judge(*runs, beat=BEAT, gate="success", stable_for=600):
        runs = [replace(run, paths=(f"/r/releases/{state.release}/a.whl",) if run.paths else ()) for run in runs]
        monkeypatch.setattr(type(target.remote), "list_runs", lambda self, job_id, active=False: runs)
        file.write_text(replace(beat, release=beat.release or state.release).to_json())
        return require_proven(target, state, gate, stable_for)

    return judge


def test_completed_run_proves_a_release(judge):
    assert judge(SUCCEEDED) == ["job live of staging: run 6 has succeeded"]
    assert judge(SUCCEEDED, FAILED) == ["job live of staging: run 6 has succeeded"]


def test_run_that_has_just_started_does_not_hide_a_completed_one(judge):
    """A continuous job whose runs end always has a run that has just started."""
    just_started = replace(BEAT, first_batch_at="2026-01-01T12:10:00+00:00")
    assert judge(RUNNING, SUCCEEDED, beat=just_started) == ["job live of staging: run 6 has succeeded"]
    with pytest.raises(DeploymentError, match="run 7 has worked for 5 seconds, not yet 10 minutes"):
        judge(RUNNING, FAILED, SUCCEEDED, beat=just_started)
    with pytest.raises(DeploymentError, match="step 'land' failed: no space"):
        judge(RUNNING, SUCCEEDED, beat=replace(just_started, failure="step 'land' failed: no space"))


def test_batches_over_the_stated_time_prove_a_release(judge):
    assert judge(RUNNING) == ["job live of staging: run 7 has worked for 10 minutes (land: batch 40, 1,200 rows)"]
    with pytest.raises(DeploymentError, match="run 7 has worked for 10 minutes, not yet 11 minutes"):
        judge(RUNNING, stable_for=660)
    assert judge(RUNNING, gate="started", stable_for=660)


def test_step_without_anything_to_read_proves_a_release(judge):
    idle = replace(BEAT, batch=-1, first_batch_at="", idle_since="2026-01-01T12:00:01+00:00")
    assert judge(RUNNING, beat=idle) == ["job live of staging: run 7 has worked for 10 minutes (land: nothing to read)"]


@pytest.mark.parametrize(
    ("runs", "beat", "doubt"),
    [
        ([], BEAT, "it has no run with this release"),
        ([RUNNING], replace(BEAT, first_batch_at="", batch=-1), "has worked for 0 seconds, not yet 10 minutes"),
        ([RUNNING], replace(BEAT, release="other"), "has worked for 0 seconds, not yet 10 minutes"),
        ([RUNNING], replace(BEAT, failure="step 'land' failed: no space"), "step 'land' failed: no space"),
        ([FAILED, SUCCEEDED], BEAT, "run 5 has failed: division by zero"),
        ([Run(8, "PENDING", paths=PATH), FAILED], BEAT, "run 5 has failed: division by zero"),
        ([Run(8, "TERMINATED", "CANCELED", paths=PATH)], BEAT, "run 8 is canceled"),
    ],
    ids=["no run", "no batch", "batches of another release", "failed step", "failed", "failed before", "cancelled"],
)
def test_release_that_has_not_proved_itself_is_not_promoted(judge, runs, beat, doubt):
    with pytest.raises(DeploymentError, match=doubt) as error:
        judge(*runs, beat=beat)
    assert "or pass --gate started or --gate none" in str(error.value)
    assert judge(*runs, beat=beat, gate="none") == []


def test_weaker_gate_sees_failures_too(judge):
    with pytest.raises(DeploymentError, match="run 5 has failed") as error:
        judge(FAILED, gate="started")
    assert "or pass --gate none" in str(error.value)
    assert "--gate started" not in str(error.value)


def test_run_without_heartbeats_is_judged_by_its_age(judge, tiny, monkeypatch):
    state = tiny.state()
    jobs = {"live": replace(state.jobs["live"], heartbeat_files=())}
    state, target = replace(state, jobs=jobs), tiny.target()
    (run,) = target.remote.list_runs(jobs["live"].id)
    with pytest.raises(DeploymentError, match="not yet 10 minutes"):
        require_proven(target, state, "success", 600)
    old = replace(run, began=int((time.time() - 665) * 1000))
    monkeypatch.setattr(type(target.remote), "list_runs", lambda self, job_id, active=False: [old])
    assert require_proven(target, state, "success", 600) == [
        f"job live of staging: run {run.id} has worked for 11 minutes"
    ]


def test_unfinished_deployment_is_not_promoted(tiny):
    with pytest.raises(DeploymentError, match="nothing is deployed"):
        require_deployed(tiny.target(), tiny.state())
