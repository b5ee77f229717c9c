"""Operations on deployed jobs: list their status, read their output, start, stop and destroy them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.checkpoints.heartbeat import Heartbeat
from headrace.config.locations import fix_for_unknown_name
from headrace.deploy import planner
from headrace.deploy.deploy_lock import Report
from headrace.deploy.deploy_state import TRIGGERS, DeployedJob, State, has_active_continuous_trigger
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.drain import Timeouts, delete_job, drain
from headrace.deploy.health import read_heartbeats
from headrace.deploy.remote import Run
from headrace.deploy.state_store import StateStore
from headrace.errors import ConfigurationError, DataError


@dataclass(frozen=True)
class JobStatus:
    """A deployed job, its trigger, and the run that `headrace jobs` shows."""

    key: str
    id: int
    release: str
    trigger: str  # the settings key of the job's Databricks trigger (one of TRIGGERS), or "" if it has none
    state: str  # stopped (by `headrace stop`), deleted outside Headrace, paused, unpaused, or "" if it has no trigger
    shown_run: Run | None  # the newest active run, otherwise the latest run; None if there is none
    heartbeats: tuple[Heartbeat, ...] = ()  # of the job's steps


def job_statuses(target: DeployTarget, state: State) -> list[JobStatus]:
    """Return the status of each job of the environment."""
    statuses = []
    for key, deployed in sorted(state.jobs.items()):
        job = target.remote.get_job(deployed.id)
        runs = target.remote.list_runs(deployed.id) if job else []
        settings = job.settings if job else {}
        trigger = next((trigger for trigger in TRIGGERS if trigger in settings), "")
        if job is None:
            job_state = "deleted outside Headrace"
        elif key in state.stopped:
            job_state = "stopped"
        else:
            job_state = str(settings[trigger].get("pause_status", "")).lower() if trigger else ""
        latest_run = runs[0] if runs else None
        shown_run = next((run for run in runs if run.is_active), latest_run)
        beats = tuple(read_heartbeats(deployed.heartbeat_files, target))
        statuses.append(JobStatus(key, deployed.id, deployed.release, trigger, job_state, shown_run, beats))
    return statuses


def list_job_runs(key: str, target: DeployTarget, state: State) -> list[Run]:
    """Return the latest runs of a job, the newest first."""
    return target.remote.list_runs(_require_deployed_job(key, target, state).id)


def start_job(key: str, target: DeployTarget, *, break_lock: bool, report: Report) -> None:
    """Resume the job if it is stopped, and start a run unless one is active.

    If the job has an unpaused continuous trigger, the platform starts the run.
    """
    store = StateStore(target)
    with store.locked(f"start {key}", break_lock=break_lock, report=report):
        state = store.read()
        deployed = _require_deployed_job(key, target, state)
        if key in state.stopped:
            state = store.write(_resend_job(key, deployed, target, state, is_paused=False))
            deployed = state.jobs[key]
        is_running = bool(target.remote.list_runs(deployed.id, active=True))
        if has_active_continuous_trigger(deployed.sent_body):
            # In a workspace, the trigger starts the run, and this reset changes nothing. A plain Spark cluster has no
            # scheduler; there, the reset starts the run.
            if not is_running:
                store.require_lock()
                target.remote.reset_job(deployed.id, deployed.sent_body)
            report(f"job {key}: runs continuously")
            return
        if is_running:
            report(f"job {key}: is already running")
            return
        run = target.remote.start_run(deployed.id, f"{state.lineage}-{state.serial}-{deployed.id}-manual")
        store.write(state)  # increments the serial, so the next start gets a new idempotency token
        report(f"job {key}: run {run} started")


def stop_job(key: str, target: DeployTarget, timeouts: Timeouts, *, break_lock: bool, report: Report) -> None:
    """Pause the job's triggers and drain its runs. The job stays stopped until `start_job`, even if it is deployed."""
    store = StateStore(target)
    with store.locked(f"stop {key}", break_lock=break_lock, report=report):
        state = store.read()
        deployed = _require_deployed_job(key, target, state)
        store.write(_resend_job(key, deployed, target, state, is_paused=True))
        drain(deployed.id, key, deployed.request_files, target, timeouts, report)
        report(f"job {key}: stopped; to resume it: headrace start {key} --env {target.name}")


def destroy(target: DeployTarget, timeouts: Timeouts, *, break_lock: bool, report: Report) -> None:
    """Delete the environment's jobs, releases and state; tables and checkpoints stay."""
    store = StateStore(target)
    with store.locked("destroy", break_lock=break_lock, report=report):
        state = store.read()
        existing_jobs, _ = planner.find_jobs(target, state)
        # A job that is only in the state was deleted outside Headrace. An unfinished deployment created a job that is
        # only in `existing_jobs`.
        for key in sorted(state.jobs.keys() | existing_jobs.keys()):
            if key in existing_jobs:
                store.require_lock()
                delete_job(existing_jobs[key].id, key, state.jobs.get(key), target, timeouts, report)
            state = store.write(state.without_job(key))
        store.require_lock()
        target.remote.delete(target.root)


def read_job_output(key: str, target: DeployTarget, state: State, run_id: int | None = None) -> tuple[Run, str]:
    """Return the run with the id `run_id` and its output; without `run_id`, the latest run that has an output.

    Raise DataError if the job has no such run. Only the runs that `Remote.list_runs` returns are searched.
    """
    deployed = _require_deployed_job(key, target, state)
    runs = target.remote.list_runs(deployed.id)
    matches = [run for run in runs if run.id == run_id] if run_id is not None else runs
    if not matches:
        problem = f"no run {run_id}" if run_id else "no run yet"
        fix = f"start one: headrace start {key} --env {target.name}"
        if runs:
            fix = f"use one of its runs: {', '.join(str(run.id) for run in runs)}"
        raise DataError(f"job {key!r} has {problem}", where=f"{target.remote.name}: job {deployed.id}", fix=fix)
    for run in matches:
        output = target.remote.read_output(run)
        if output.strip():
            return run, output
    return matches[0], ""


def _require_deployed_job(key: str, target: DeployTarget, state: State) -> DeployedJob:
    """Return a job of the state; raise ConfigurationError if there is none with this key."""
    if key not in state.jobs:
        raise ConfigurationError(
            f"environment {target.name!r} has no job {key!r}",
            where=target.remote.name,
            fix=fix_for_unknown_name(key, state.jobs, f"deploy it: headrace deploy --env {target.name}"),
        )
    return state.jobs[key]


def _resend_job(key: str, deployed: DeployedJob, target: DeployTarget, state: State, *, is_paused: bool) -> State:
    """Send the job with its triggers paused if `is_paused`, otherwise as the release defines them.

    Return the new state, in which the job counts as stopped if `is_paused`. The caller writes this state.
    """
    new = replace(deployed, is_paused=is_paused)
    target.remote.reset_job(deployed.id, new.sent_body)
    job = target.remote.get_job(deployed.id)
    new = replace(new, returned_settings=job.settings if job else {})
    stopped = {*state.stopped, key} if is_paused else {*state.stopped} - {key}
    return replace(state.with_job(key, new), stopped=tuple(sorted(stopped)))
