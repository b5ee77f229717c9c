"""A deployment in progress: what it applies, and the state of the environment, which it writes as it proceeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.deploy.deploy_lock import Report
from headrace.deploy.deploy_state import DeployedJob, JobBody, State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.drain import Timeouts
from headrace.deploy.plan import JobPlan, Plan
from headrace.deploy.state_store import StateStore
from headrace.release.releases import Release

DEFAULT_KEPT_RELEASES = 5


@dataclass(frozen=True)
class ApplyOptions:
    """The command that applies a plan, and its options."""

    command: str  # deploy, promote, rollback
    promoted_from: str = ""  # the environment whose release is promoted; empty unless the command is promote
    break_lock: bool = False  # replace the lock of another command; otherwise, fail if there is one
    keep: int = DEFAULT_KEPT_RELEASES  # number of deployed releases that are not deleted
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass
class Deployment:
    """One deployment, whose command holds the lock of the environment."""

    plan: Plan
    release: Release
    target: DeployTarget
    options: ApplyOptions
    store: StateStore
    report: Report
    state: State

    @property
    def previous_jobs(self) -> dict[str, DeployedJob]:
        """The changed jobs before the deployment."""
        return self.state.intent.previous_jobs if self.state.intent else {}

    def write(self, state: State) -> None:
        """Write a new state."""
        self.state = self.store.write(state)

    def record(
        self, job_id: int, job: JobPlan, request_files: Iterable[str], *, is_paused: bool, needs_restart: bool = False
    ) -> None:
        """Write the job to the state as it was just sent, with the settings that the platform returns for it."""
        deployed = DeployedJob(
            id=job_id,
            release=self.release.id,
            body=job.body,
            is_paused=is_paused,
            returned_settings=self.returned_settings(job_id),
            grants=job.grants,
            request_files=tuple(sorted(request_files)),
            heartbeat_files=job.heartbeat_files,
            runs_continuously=job.runs_continuously,
            needs_restart=needs_restart,
        )
        self.write(self.state.with_job(job.key, deployed))

    def reset_job(self, job_id: int, body: JobBody) -> None:
        """Replace all settings of a job, unless another command has broken the lock."""
        self.store.require_lock()
        self.target.remote.reset_job(job_id, body)

    def start_run(self, job_id: int, *, attempt: str = "") -> None:
        """Start a run. Without another `attempt`, a second call starts none until the state is written again."""
        token = f"{self.state.lineage}-{self.state.serial}-{job_id}{attempt}"
        self.target.remote.start_run(job_id, token)

    def returned_settings(self, job_id: int) -> JobBody:
        """Return the settings that the platform returns for a job."""
        job = self.target.remote.get_job(job_id)
        return job.settings if job else {}
