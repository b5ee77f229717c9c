"""Whether a release has proved itself in one environment, so that it may go on to the next."""

from __future__ import annotations

from typing import Literal

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import Place
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError, Problem

Gate = Literal["success", "started", "none"]


def require_deployed(place: Place, state: State) -> None:
    """Refuses an environment from which nothing can be taken: empty, or in the middle of a change."""
    if state.intent is None and state.release:
        return
    deploy = f"headrace deploy --env {place.name}"
    raise DeploymentError(
        f"environment {place.name!r} is in the middle of a {state.intent.what}"
        if state.intent
        else f"nothing is deployed to environment {place.name!r}",
        where=f"{place.remote.name}: {place.root}",
        fix=f"let it come to its end first: {deploy}" if state.intent else f"deploy to it first: {deploy}",
    )


def require_proof(place: Place, state: State, gate: Gate) -> None:
    """Refuses a release whose jobs have not all run well: to their end, or for a job that goes on, up to now."""
    if gate == "none":
        return
    problems = []
    for key, deployed in sorted(state.jobs.items()):
        runs = [run for run in place.remote.runs(deployed.id) if run.uses(state.release)]
        if not any(_is_well(run, deployed.goes_on, gate) for run in runs):
            last = f"its last run says {runs[0].result or runs[0].phase}" if runs else "it has not run with it"
            problems.append(
                Problem(
                    f"{place.remote.name}: job {deployed.id}",
                    f"job {key!r} of environment {place.name!r} has not run successfully with release "
                    f"{state.release}: {last}",
                    f"run it (headrace start {key} --env {place.name}), or pass --gate started, or --gate none",
                )
            )
    if problems:
        raise DeploymentError.of(problems)


def _is_well(run: Run, goes_on: bool, gate: Gate) -> bool:
    if gate == "started":
        return run.phase == "RUNNING" or run.result == "SUCCESS"
    return run.result == "SUCCESS" or (goes_on and run.phase == "RUNNING")
