"""Check that a release may be promoted: it is deployed completely, and its jobs have proved that they work with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from headrace.checkpoints.heartbeat import Heartbeat, seconds_between
from headrace.deploy.deploy_lock import format_duration
from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.health import describe_heartbeats, read_heartbeats
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError, Problem

Gate = Literal["success", "started", "none"]


def require_deployed(target: DeployTarget, state: State) -> None:
    """Raise DeploymentError if the environment has no release or an unfinished deployment."""
    if state.intent is None and state.release:
        return
    if state.intent is not None:
        message, action = f"environment {target.name!r} has an unfinished {state.intent.command}", "finish it first"
    else:
        message, action = f"nothing is deployed to environment {target.name!r}", "deploy to it first"
    raise DeploymentError(
        message,
        where=f"{target.remote.name}: {target.root}",
        fix=f"{action}: headrace deploy --env {target.name}",
    )


def require_proven(target: DeployTarget, state: State, gate: Gate, stable_for: float) -> list[str]:
    """Return what each job has done with the deployed release, as text.

    Raise DeploymentError with a problem for each job that has not proved itself. With the gate "success", a job has
    proved itself if a run of the release has succeeded, or if its steps have worked for `stable_for` seconds in an
    active run. With "started", an active run is enough. In both cases, no run of the release may have failed since.
    With "none", nothing is required.
    """
    seen, problems = [], []
    for key, deployed in sorted(state.jobs.items()) if gate != "none" else ():
        runs = [run for run in target.remote.list_runs(deployed.id) if run.uses(state.release)]
        beats = [beat for beat in read_heartbeats(deployed.heartbeat_files, target) if beat.release == state.release]
        proof, doubt = _assess(runs, beats, len(deployed.heartbeat_files), gate, stable_for)
        if proof:
            seen.append(f"job {key} of {target.name}: {proof}")
            continue
        weaker = "--gate started or --gate none" if gate == "success" else "--gate none"
        problems.append(
            Problem(
                f"{target.remote.name}: job {deployed.id}",
                f"release {state.release} has not proved itself in job {key!r} of environment {target.name!r}: {doubt}",
                f"see its runs (headrace jobs {key} --env {target.name}), start one "
                f"(headrace start {key} --env {target.name}), or pass {weaker}",
            )
        )
    if problems:
        raise DeploymentError.of(problems)
    return seen


def _assess(
    runs: Sequence[Run], beats: Sequence[Heartbeat], steps: int, gate: Gate, stable_for: float
) -> tuple[str, str]:
    """Return what proves that a job works, or what is missing, as the first or the second text; the other is empty.

    `runs` are the job's runs of the release, the newest first; `steps` is how many of its steps write heartbeats.
    """
    if not runs:
        return "", "it has no run with this release"
    failed_step = next((beat.failure for beat in beats if beat.failure), "")
    doubt = ""
    for run in runs:
        if run.result == "SUCCESS":
            return f"run {run.id} has succeeded", ""
        if run.has_failed:
            return "", doubt or f"run {run.id} has failed: {run.message or run.result or run.phase}"
        if run.phase == "RUNNING":
            if failed_step:
                return "", failed_step
            proof, doubt = _assess_active(run, beats, steps, 0.0 if gate == "started" else stable_for)
            if proof:
                return proof, ""
    return "", doubt or f"run {runs[0].id} is {(runs[0].result or runs[0].phase).lower()}"


def _assess_active(run: Run, beats: Sequence[Heartbeat], steps: int, stable_for: float) -> tuple[str, str]:
    """Return the same as `_assess`, for one active run."""
    running = time.time() - run.began / 1000
    worked = min((_worked_for(beat) for beat in beats), default=0.0) if steps else running
    if len(beats) < steps:
        worked = 0.0
    done = describe_heartbeats(beats)
    if worked >= stable_for:
        return f"run {run.id} has worked for {format_duration(worked)}" + (f" ({done})" if done else ""), ""
    reason = f"its run {run.id} has worked for {format_duration(worked)}, not yet {format_duration(stable_for)}"
    return "", reason + (f" ({done})" if done else "")


def _worked_for(beat: Heartbeat) -> float:
    """Return for how many seconds the step has committed batches, or has had nothing to read."""
    starts = [start for start in (beat.first_batch_at, beat.idle_since) if start]
    return seconds_between(min(starts), beat.at) if starts else 0.0
