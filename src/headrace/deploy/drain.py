"""Stop the active runs of a job between two batches.

A stop request is a file beside the checkpoints that runs poll. Runs that cannot get a request, or do not
stop in time, are cancelled.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.checkpoints.stop_request import new_request
from headrace.deploy.deploy_lock import Report
from headrace.deploy.deploy_state import DeployedJob, pause_triggers
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError

FIRST_POLL_S, LONGEST_POLL_S = 0.1, 5.0  # the interval between two polls grows from the first to the longest
CANCEL_TIMEOUT_S = 120.0  # until a cancelled run has ended


@dataclass(frozen=True)
class Timeouts:
    """How long a deployment waits, in seconds."""

    drain: float = 300.0  # until runs have stopped between two batches
    start: float = 1800.0  # until a new run works; starting a cluster takes minutes
    idle: float = 30.0  # for how long a step without a batch must have had nothing to read to count as working
    watch: float = 600.0  # for how long the new runs are watched once they work


def drain(
    job_id: int, key: str, request_files: Iterable[str], target: DeployTarget, timeouts: Timeouts, report: Report
) -> None:
    """Stop the job's active runs, and return when none is active. The job's triggers must be paused already.

    `request_files` are the paths of the stop requests that the runs poll. If there are none, or one cannot be written,
    or a run is still active after `timeouts.drain` seconds, cancel the runs. Raise DeploymentError if a run is active
    even CANCEL_TIMEOUT_S seconds after that.
    """
    active = target.remote.list_runs(job_id, active=True)
    files = list(request_files)
    if not active:  # a command that was killed may have left its requests, which would stop the job's next run
        _delete_requests(files, target)
        return
    content = new_request(target.user, within=timeouts.drain + CANCEL_TIMEOUT_S)
    written = [target.remote.write_request(file, content) for file in files]
    if written and all(written):
        report(f"job {key}: stopping between two batches …")
        if _wait_for_end(active, target, timeouts.drain):
            _delete_requests(files, target)
            report(f"job {key}: stopped")
            return
        report(f"job {key}: has not stopped within {timeouts.drain:g} seconds, cancelling …")
    else:
        report(f"job {key}: cannot be asked to stop between two batches, cancelling …")
    for run in active:
        target.remote.cancel_run(run.id)
    if not _wait_for_end(active, target, CANCEL_TIMEOUT_S):
        raise DeploymentError(
            f"job {key!r}: run {active[0].id} is still active {CANCEL_TIMEOUT_S:g} seconds after it was cancelled",
            where=active[0].url or target.remote.name,
            fix="end the run in its workspace, then run the same command again: it continues where this one ended",
        )
    _delete_requests(files, target)


def delete_job(
    job_id: int, key: str, deployed: DeployedJob | None, target: DeployTarget, timeouts: Timeouts, report: Report
) -> None:
    """Drain the runs of a job and delete the job.

    `deployed` is None if an unfinished deployment created the job but did not record it. Such a job has no runs.
    """
    if deployed is not None:
        target.remote.reset_job(job_id, pause_triggers(deployed.body))
        drain(job_id, key, deployed.request_files, target, timeouts, report)
    target.remote.delete_job(job_id)
    report(f"job {key}: deleted")


def polls(timeout: float, *, longest: float = LONGEST_POLL_S) -> Iterator[None]:
    """Yield immediately, then at growing intervals. The last yield is the first one after `timeout` seconds.

    `longest` is the longest interval, in seconds.
    """
    deadline, interval = time.monotonic() + timeout, FIRST_POLL_S
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(interval)
        interval = min(interval * 1.5, longest)


def _delete_requests(files: Iterable[str], target: DeployTarget) -> None:
    """Delete the stop requests, which would otherwise stop the job's next run."""
    for file in files:
        target.remote.delete_request(file)


def _wait_for_end(runs: list[Run], target: DeployTarget, timeout: float) -> bool:
    """Return True as soon as all runs have ended, or False if one is still active after `timeout` seconds."""

    def have_ended() -> bool:
        return not any(target.remote.get_run(run.id).is_active for run in runs)

    return any(have_ended() for _ in polls(timeout))
