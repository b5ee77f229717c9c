"""Wait until a deployed job works with its new release, and watch it for some time after that."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headrace.checkpoints.heartbeat import Heartbeat
from headrace.deploy.deploy_lock import Report, format_duration
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.drain import Timeouts, polls
from headrace.deploy.health import Health, assess, read_heartbeats
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError

WATCH_POLL_S = 15.0  # the longest interval between two polls while jobs are watched
ERROR_LINE = re.compile(r"[\w.]*(Error|Exception): ")
REPORT_INTERVAL_S = 60.0  # between two lines of progress while jobs are watched


@dataclass
class JobWatch:
    """The new runs of one job, and the new heartbeats of its steps."""

    key: str
    job_id: int
    release: str
    heartbeat_files: Collection[str]
    earlier_runs: Collection[int]  # the ids of the runs that the deployment did not start
    earlier_beats: Collection[str]  # the names of these runs in heartbeats
    target: DeployTarget
    timeouts: Timeouts
    report: Report
    expects_run: bool  # the deployment or the platform starts a run of the job
    _running_since: float | None = None

    def wait(self) -> str:
        """Wait until the job works, and report what is missing.

        Return "", or the reason why it does not work: a run or a step has failed, or time is up.
        """
        waiting_for = ""
        health = Health()
        for _ in polls(self.timeouts.start):  # yields at least once
            health = self.health()
            if health.failure:
                return health.failure
            if health.is_working:
                self.report(f"job {self.key}: works ({health.progress})")
                return ""
            if health.waiting_for != waiting_for:
                waiting_for = health.waiting_for
                self.report(f"job {self.key}: waiting for {waiting_for} …")
        return f"after {format_duration(self.timeouts.start)} it still waits for {health.waiting_for}"

    def health(self) -> Health:
        """Return the health of the job now."""
        runs = [run for run in self.target.remote.list_runs(self.job_id) if run.id not in self.earlier_runs]
        is_running = any(run.phase == "RUNNING" for run in runs)
        if is_running and self._running_since is None:
            self._running_since = time.monotonic()
        health = assess(
            self.release,
            runs,
            self._beats() if is_running or any(not run.is_active for run in runs) else (),
            steps=len(self.heartbeat_files),
            idle=self.timeouts.idle,
            running_for=time.monotonic() - self._running_since if is_running and self._running_since else 0.0,
        )
        if health.failed_run is not None and (cause := self._cause(health.failed_run)):
            return replace(health, failure=f"{health.failure}: {cause}")
        return health

    def _cause(self, run: Run) -> str:
        """Return the last line of a run's output that names an error; empty if there is none."""
        with suppress(DeploymentError):
            lines = self.target.remote.read_output(run).splitlines()
            return next((line.strip() for line in reversed(lines) if ERROR_LINE.match(line)), "")
        return ""

    def _beats(self) -> list[Heartbeat]:
        beats = read_heartbeats(self.heartbeat_files, self.target)
        return [beat for beat in beats if beat.release == self.release and beat.run not in self.earlier_beats]


def watch_jobs(jobs: Sequence[JobWatch], timeouts: Timeouts, report: Report) -> dict[str, str]:
    """Watch jobs that work for `timeouts.watch` seconds, or until one fails. Return why jobs have failed, by key."""
    if not jobs or not timeouts.watch:
        return {}
    names = ", ".join(job.key for job in jobs)
    report(f"watching {names} for {format_duration(timeouts.watch)} …")
    begun = reported = time.monotonic()
    for _ in polls(timeouts.watch, longest=WATCH_POLL_S):
        found = {job.key: job.health() for job in jobs}
        if failures := {key: health.failure for key, health in found.items() if health.failure}:
            return failures
        if time.monotonic() - reported >= REPORT_INTERVAL_S:
            reported = time.monotonic()
            remaining = format_duration(max(0.0, timeouts.watch - (reported - begun)))
            progress = "; ".join(f"{key}: {health.progress}" for key, health in found.items())
            report(f"watching, {remaining} left: {progress}")
    return {}
