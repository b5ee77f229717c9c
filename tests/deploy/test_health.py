"""Whether a job works: what runs and heartbeats show, and what a deployment does if a job stops working."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments import SHORT_TIMEOUTS, with_keys
from headrace.checkpoints.heartbeat import Heartbeat
from headrace.deploy.health import assess
from headrace.deploy.job_watch import JobWatch
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError

RUNNING = Run(2, "RUNNING", paths=("/r/releases/new/wheels/a.whl",))
BEAT = Heartbeat("p", "land", "new", "run 2", "2026-01-01T12:00:00+00:00", at="2026-01-01T12:01:00+00:00")


def health(*runs, beats=(), steps=1, running_for=0.0):
    return assess("new", runs, beats, steps=steps, idle=30, running_for=running_for)


@pytest.mark.parametrize(
    ("runs", "waiting_for"),
    [
        ([], "its run to start"),
        ([Run(2, "PENDING")], "its run to start"),
        ([replace(RUNNING, paths=("/r/releases/old/wheels/a.whl",))], "its run to start"),
        ([RUNNING], "the first batch"),
    ],
    ids=["none", "pending", "of another release", "running"],
)
def test_job_without_a_running_run_or_a_heartbeat_does_not_work_yet(runs, waiting_for):
    assert health(*runs).waiting_for == waiting_for


def test_step_works_after_its_first_batch():
    assert health(RUNNING, beats=[BEAT]).waiting_for == "the first batch of step 'land'"
    found = health(RUNNING, beats=[replace(BEAT, batch=0, rows=1200)])
    assert found.is_working
    assert found.progress == "land: batch 0, 1,200 rows"


def test_step_that_has_had_nothing_to_read_for_the_stated_time_works():
    idle = replace(BEAT, idle_since="2026-01-01T12:00:31+00:00")
    assert not health(RUNNING, beats=[idle]).is_working
    assert health(RUNNING, beats=[replace(idle, idle_since="2026-01-01T12:00:30+00:00")]).is_working


def test_every_step_has_to_work():
    land, gold = replace(BEAT, batch=3), replace(BEAT, step="gold")
    assert health(RUNNING, beats=[land, gold], steps=2).waiting_for == "the first batch of step 'gold'"
    assert not health(RUNNING, beats=[land], steps=2).is_working
    assert health(RUNNING, beats=[land, replace(gold, ended="then")], steps=2).is_working


def test_job_without_heartbeats_works_after_the_stated_time():
    assert health(RUNNING, steps=0, running_for=29).waiting_for == "30 seconds without a failed run"
    assert health(RUNNING, steps=0, running_for=30).is_working


def test_failed_run_is_a_failure_even_if_another_one_works():
    failed = Run(1, "TERMINATED", "FAILED", "no such wheel")
    found = health(RUNNING, failed, beats=[replace(BEAT, batch=3)])
    assert found.failure == "run 1 ended: no such wheel"
    broken = replace(BEAT, failure="step 'land' failed: division by zero")
    restarted = replace(BEAT, last_failure=broken.failure)
    assert health(failed, beats=[broken]).failure == "run 1 ended: step 'land' failed: division by zero"
    assert health(RUNNING, failed, beats=[restarted]).failure == "run 1 ended: step 'land' failed: division by zero"
    assert health(RUNNING, beats=[broken]).failure == "step 'land' failed: division by zero"
    assert not health(RUNNING, beats=[restarted]).failure
    assert health(Run(1, "TERMINATED", "SUCCESS")).is_working


@pytest.fixture
def simulator(workspace):
    """The object that writes the heartbeats of simulated runs."""
    return workspace._dispatcher._execute_tasks


def test_job_that_never_commits_a_batch_is_restored(tiny, simulator, monkeypatch):
    before = tiny.deploy()
    changed = tiny.change()
    monkeypatch.setattr(simulator, "_simulate", lambda run: None)
    with pytest.raises(DeploymentError, match=r"after 1 second it still waits for the first batch.*was restored"):
        tiny.deploy(changed, timeouts=replace(SHORT_TIMEOUTS, start=1))
    assert (tiny.state().release, tiny.state().jobs["live"].release) == (before.release, before.release)
    assert "job live: waiting for the first batch …" in tiny.reported


def test_job_that_fails_while_it_is_watched_is_restored(tiny, workspace, simulator, monkeypatch):
    before = tiny.deploy()
    changed = tiny.change()
    health_of, looks = JobWatch.health, []

    def health_with_a_failure(self):
        looks.append(self.key)
        if len(looks) == 3:
            (file,) = workspace.directory.rglob("p/land/heartbeat.json")
            beat = Heartbeat.from_json(file.read_text())
            file.write_text(replace(beat, batch=9, failure="step 'land' failed: division by zero").to_json())
        return health_of(self)

    monkeypatch.setattr(JobWatch, "health", health_with_a_failure)
    with pytest.raises(DeploymentError, match=r"step 'land' failed: division by zero; it was restored to release"):
        tiny.deploy(changed, timeouts=replace(SHORT_TIMEOUTS, watch=60))
    assert "watching live for 1 minute …" in tiny.reported
    assert (tiny.state().release, tiny.state().jobs["live"].release) == (before.release, before.release)
    assert tiny.state().history[-1].outcome != "done"


def test_interrupted_watch_goes_on_when_the_deployment_is_repeated(tiny, monkeypatch):
    tiny.deploy()
    changed = tiny.change()

    def interrupt(jobs, timeouts, report):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headrace.deploy.apply.watch_jobs", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tiny.deploy(changed)
    assert tiny.state().intent.release == changed.id
    plan = tiny.plan(changed)
    assert ({job.action for job in plan.jobs}, plan.is_empty) == ({"unchanged"}, False)
    tiny.reported.clear()
    tiny.deploy(changed, timeouts=replace(SHORT_TIMEOUTS, watch=0.1))
    assert tiny.reported == ["watching live for 0 seconds …"]
    assert (tiny.state().intent, tiny.state().release) == (None, changed.id)


@pytest.mark.parametrize("is_started", [True, False], ids=["started", "not started"])
def test_job_stays_paused_if_its_earlier_release_cannot_read_the_new_state(tiny, simulator, monkeypatch, is_started):
    old = with_keys(tiny.release(), "id")
    tiny.deploy(old)
    new = with_keys(tiny.change(), "n")
    if not is_started:
        monkeypatch.setattr(simulator, "_simulate", lambda run: None)
    monkeypatch.setattr(JobWatch, "wait", lambda watch: "division by zero")
    with pytest.raises(DeploymentError) as error:
        tiny.deploy(new)
    job = tiny.state().jobs["live"]
    settings = tiny.target().remote.get_job(job.id).settings
    if not is_started:
        assert "it was restored to release" in str(error.value)
        assert (job.release, settings["continuous"]["pause_status"]) == (old.id, "UNPAUSED")
        return
    assert f"left paused, because release {old.id} cannot continue the checkpoints of p/land" in str(error.value)
    assert (
        "go back: headrace reset p --step land --env staging, headrace rollback --env staging, "
        "headrace start live --env staging" in str(error.value)
    )
    assert (job.release, job.is_paused, settings["continuous"]["pause_status"]) == (new.id, True, "PAUSED")
