"""Whether a job works with a release: what its runs and the heartbeats of its steps show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from headrace.checkpoints.heartbeat import Heartbeat, seconds_between
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.remote import Run
from headrace.errors import DeploymentError


@dataclass(frozen=True)
class Health:
    """What the new runs of a job show. A job works if it has neither failed nor anything to wait for."""

    failure: str = ""  # why the job does not work; empty if no run and no step has failed
    failed_run: Run | None = None  # whose output has the cause, because no heartbeat has it
    waiting_for: str = ""  # what is missing until the job counts as working; empty if nothing is
    progress: str = ""  # what the job has done so far

    @property
    def is_working(self) -> bool:
        """Whether the job has been seen to work."""
        return not self.failure and not self.waiting_for


def read_heartbeats(files: Iterable[str], target: DeployTarget) -> list[Heartbeat]:
    """Return the heartbeats in these files. Files that do not exist or cannot be read are left out."""
    beats = []
    for file in files:
        try:
            content = target.remote.read_checkpoint_file(file)
            beats += [Heartbeat.from_json(content)] if content else []
        except (DeploymentError, ValueError):
            continue
    return beats


def assess(
    release: str,
    runs: Sequence[Run],
    beats: Sequence[Heartbeat],
    *,
    steps: int,
    idle: float,
    running_for: float,
) -> Health:
    """Return the health of a job whose new runs and new heartbeats are given; the newest run first.

    A run that has ended with success is enough. Otherwise a run must be running, and each of the job's `steps` must
    have committed a batch, or have had nothing to read for `idle` seconds. If the steps write no heartbeats (`steps`
    is 0), the run must have been running for `idle` seconds; `running_for` is how long this was seen.
    """
    failed_run = next((run for run in runs if not run.is_active and run.result != "SUCCESS"), None)
    failure = next((beat.failure for beat in beats if beat.failure), "")
    if failed_run is not None:
        # After a failure, the platform may have started another run already.
        cause = failure or next((beat.last_failure for beat in beats if beat.last_failure), "")
        reason = cause or failed_run.message or failed_run.result or failed_run.phase
        return Health(f"run {failed_run.id} ended: {reason}", None if cause else failed_run)
    if failure:
        return Health(failure)
    if ended := next((run for run in runs if not run.is_active), None):
        return Health(progress=f"run {ended.id} has succeeded")
    running = next((run for run in runs if run.phase == "RUNNING" and run.uses(release)), None)
    if running is None:
        return Health(waiting_for="its run to start", progress=runs[0].phase.lower() if runs else "")
    progress = describe_heartbeats(beats) or f"run {running.id} is running"
    if not steps:
        is_proven = running_for >= idle
        return Health(waiting_for="" if is_proven else f"{idle:g} seconds without a failed run", progress=progress)
    proven = [beat.step for beat in beats if _has_worked(beat, idle)]
    if len(proven) >= steps:
        return Health(progress=progress)
    waiting = [beat.step for beat in beats if beat.step not in proven]
    names = f" of step{'s' if len(waiting) > 1 else ''} {', '.join(map(repr, waiting))}" if waiting else ""
    return Health(waiting_for=f"the first batch{names}", progress=progress)


def describe_heartbeats(beats: Collection[Heartbeat]) -> str:
    """Return what the steps have done, as one line; empty without a heartbeat."""
    return ", ".join(_describe(beat) for beat in sorted(beats, key=lambda beat: (beat.pipeline, beat.step)))


def _has_worked(beat: Heartbeat, idle: float) -> bool:
    has_been_idle = bool(beat.idle_since) and seconds_between(beat.idle_since, beat.at) >= idle
    return beat.has_batch or has_been_idle or bool(beat.ended)


def _describe(beat: Heartbeat) -> str:
    if beat.has_batch:
        return f"{beat.step}: batch {beat.batch}, {beat.rows:,} rows"
    return f"{beat.step}: {'nothing to read' if beat.idle_since or beat.ended else 'no batch yet'}"
