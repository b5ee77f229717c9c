"""Check that a release may be promoted: it is deployed completely, and its jobs have run successfully."""

from __future__ import annotations

from typing import Literal

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
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


def require_successful_runs(target: DeployTarget, state: State, gate: Gate) -> None:
    """Raise DeploymentError with a problem for each job that has no successful run of the deployed release.

    With the gate "success", a run counts as successful if it has succeeded, or if it is running and its job runs
    continuously. With "started", a run of any job counts while it is running, too. With "none", no run is required.
    """
    if gate == "none":
        return
    problems = []
    for key, deployed in sorted(state.jobs.items()):
        runs = [run for run in target.remote.list_runs(deployed.id) if run.uses(state.release)]
        if not any(_is_successful(run, deployed.runs_continuously, gate) for run in runs):
            reason = f"its last run is {runs[0].result or runs[0].phase}" if runs else "it has no run with this release"
            problems.append(
                Problem(
                    f"{target.remote.name}: job {deployed.id}",
                    f"job {key!r} of environment {target.name!r} has not run successfully with release "
                    f"{state.release}: {reason}",
                    f"run it (headrace start {key} --env {target.name}), or pass --gate started or --gate none",
                )
            )
    if problems:
        raise DeploymentError.of(problems)


def _is_successful(run: Run, runs_continuously: bool, gate: Gate) -> bool:
    if gate == "started":
        return run.phase == "RUNNING" or run.result == "SUCCESS"
    return run.result == "SUCCESS" or (runs_continuously and run.phase == "RUNNING")
