"""Ends the runs of a job between two batches: by a request beside the checkpoints; by a cancel when time is up."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from headrace.checkpoints.stop_request import new_request
from headrace.deploy.deploy_state import Deployed, paused
from headrace.deploy.deploy_target import Place
from headrace.deploy.remote import Run
from headrace.deploy.state_store import Say
from headrace.errors import DeploymentError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two looks: soon at first, then rarely
CANCELLING = 120.0  # seconds in which a cancelled run has to end


@dataclass(frozen=True)
class Limits:
    """How long a deployment waits, in seconds."""

    drain: float = 300.0  # for a run to stop at its batch's end
    start: float = 1800.0  # for a new run to be running: a cluster takes minutes


def drain(job: int, key: str, requests: Iterable[str], place: Place, limits: Limits, say: Say) -> None:
    """Returns when no run of the job goes on. The job must be paused: else another run begins."""
    going = place.remote.runs(job, active=True)
    files = list(requests)
    if not going:  # an earlier command may have been killed after it asked
        _withdraw(files, place)
        return
    content = new_request(place.user, within=limits.drain + CANCELLING)
    asked = [place.remote.ask(file, content) for file in files]
    if asked and all(asked):
        say(f"job {key}: asked to stop at its batch's end …")
        if _ended(going, place, limits.drain):
            _withdraw(files, place)
            say(f"job {key}: has stopped")
            return
        say(f"job {key}: has not stopped within {limits.drain:g} seconds, cancelling …")
    else:
        say(f"job {key}: cancelling, for it cannot be asked to stop …")
    for run in going:
        place.remote.cancel(run.id)
    if not _ended(going, place, CANCELLING):
        raise DeploymentError(
            f"job {key!r}: run {going[0].id} does not end, {CANCELLING:g} seconds after it was cancelled",
            where=going[0].url or place.remote.name,
            fix="end it there, and run the same command again: it goes on where this one ended",
        )
    _withdraw(files, place)


def remove(job: int, key: str, deployed: Deployed | None, place: Place, limits: Limits, say: Say) -> None:
    """Ends the runs of a job, and deletes it."""
    if deployed is not None:
        place.remote.reset_job(job, paused(deployed.body))
        drain(job, key, deployed.requests, place, limits, say)
    place.remote.delete_job(job)
    say(f"job {key}: deleted")


def running(job: int, release: str, known: Collection[int], place: Place, within: float) -> str:
    """Waits until a new run of the job runs with that release, at two looks; what is wrong when it does not."""
    before: set[int] = set()
    for _ in looks(within):
        runs = [run for run in place.remote.runs(job) if run.id not in known]
        failed = next((run for run in runs if not run.is_active and run.result != "SUCCESS"), None)
        if failed is not None:
            return f"its run {failed.id} ended: {failed.message or failed.result or failed.phase}"
        if any(not run.is_active for run in runs):
            return ""  # it had so little to do
        at_work = {run.id for run in runs if run.phase == "RUNNING" and run.uses(release)}
        if at_work & before:
            return ""
        before = at_work
    return f"no run of it was running within {within:g} seconds"


def looks(within: float) -> Iterator[None]:
    """A look at once, and more until time is up."""
    until, pause = time.monotonic() + within, FIRST_PAUSE
    while True:
        yield
        if time.monotonic() > until:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _withdraw(requests: Iterable[str], place: Place) -> None:
    """Delete the requests, so that the job's next run does not take them for its own."""
    for file in requests:
        place.remote.withdraw(file)


def _ended(runs: list[Run], place: Place, within: float) -> bool:
    return any(not any(place.remote.run(run.id).is_active for run in runs) for _ in looks(within))
