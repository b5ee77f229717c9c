"""Apply a plan. After a crash at any point, the same command finishes the deployment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from headrace.deploy import planner, restore, upload
from headrace.deploy.deploy_state import (
    DeployedJob,
    HistoryEntry,
    Intent,
    JobBody,
    State,
    has_active_continuous_trigger,
    pause_triggers,
)
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.drain import Timeouts, delete_job, drain
from headrace.deploy.health import read_heartbeats
from headrace.deploy.job_watch import JobWatch, watch_jobs
from headrace.deploy.plan import JobPlan, Plan, StepPlan, require_current
from headrace.deploy.state_store import Report, StateStore, timestamp
from headrace.errors import DeploymentError, Problem
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


def apply(plan: Plan, release: Release, target: DeployTarget, options: ApplyOptions, report: Report) -> State:
    """Apply exactly this plan and return the new state.

    Raise DeploymentError if another command holds the lock, if the plan is stale, or if a job fails.
    """
    store = StateStore(target)
    with store.locked(options.command, break_lock=options.break_lock, report=report):
        state = store.read()
        require_current(plan, planner.plan(release, target, state))
        return _Deployment(plan, release, target, options, store, report).run(state)


class _Deployment:
    """Applies one plan. `run` calls the phases in order; they write the state before and after changes to jobs."""

    def __init__(
        self,
        plan: Plan,
        release: Release,
        target: DeployTarget,
        options: ApplyOptions,
        store: StateStore,
        report: Report,
    ) -> None:
        self._plan, self._release, self._target = plan, release, target
        self._options, self._store, self._report = options, store, report
        self._remote = target.remote
        self._state = State("")  # replaced by `run`
        self._watches: dict[str, JobWatch] = {}  # by key, of the jobs whose new run works

    def run(self, state: State) -> State:
        """Apply the plan, starting from this state, and return the new state; raise DeploymentError if jobs fail."""
        changed = [job for job in self._plan.jobs if job.action in ("create", "update")]
        self._state = state
        unwatched = self._unwatched_jobs()
        self._write_intent(changed)
        self._upload_release()
        watches = {job.key: self._send_paused_and_drain(job) for job in changed}
        self._watches = {job.key: self._new_watch(job, job.id) for job in unwatched if job.id}
        for job in self._plan.jobs:
            if job.action == "delete":
                self._delete(job)
        problems = [problem for job in changed for problem in self._resume(job, watches[job.key])]
        problems = problems or list(self._watch())
        self._write_history("; ".join(problem.message for problem in problems))
        if problems:
            raise DeploymentError.of(problems)
        try:
            self._delete_old_releases()
        except (DeploymentError, KeyboardInterrupt) as error:  # the deployment itself is complete
            reason = error.problems[0].message if isinstance(error, DeploymentError) else "interrupted"
            self._report(f"old releases were not deleted, the next deployment tries again: {reason}")
        return self._state

    # ── The phases, in order ──────────────────────────────────────────────────────────────────────────

    def _write_intent(self, changed: list[JobPlan]) -> None:
        """Record the deployment before its first change."""
        interrupted_intent = self._state.intent or Intent("", "", "", "")  # empty if no deployment was interrupted
        jobs_to_create = {job.key: job.name for job in changed if job.key not in self._state.jobs}
        current_jobs = {job.key: self._state.jobs[job.key] for job in changed if job.key in self._state.jobs}
        intent = Intent(
            command=self._options.command,
            release=self._release.id,
            at=timestamp(),
            by=self._target.user,
            creates={**interrupted_intent.creates, **jobs_to_create},
            # An interrupted deployment's intent has the jobs as they were before any change, so it takes precedence.
            previous_jobs={**current_jobs, **interrupted_intent.previous_jobs},
        )
        self._state = self._store.write(replace(self._state, intent=intent))

    def _upload_release(self) -> None:
        """Upload the release, and grant read access to the users and service principals that its jobs run as."""
        upload.upload_release(self._release, self._target, self._report)
        principals = {tuple(job.body["run_as"].items()) for job in self._plan.jobs if job.body.get("run_as")}
        for principal in sorted(principals):
            self._remote.grant_read(self._target.release_path(self._release.id), dict(principal))

    def _unwatched_jobs(self) -> list[JobPlan]:
        """Return the jobs whose runs an interrupted attempt has started, but not watched until the end."""
        intent = self._state.intent
        if intent is None or intent.release != self._release.id:
            return []
        sent = intent.creates.keys() | intent.previous_jobs.keys()
        unchanged = [job for job in self._plan.jobs if job.key in sent and job.action == "unchanged"]
        return [job for job in unchanged if has_active_continuous_trigger(job.final_body)]

    def _send_paused_and_drain(self, job: JobPlan) -> JobWatch:
        """Create or update the job with paused triggers; drain its active runs if the plan replaces them.

        Return the watch for its new runs.
        """
        deployed = self._state.jobs.get(job.key)
        if job.id is None:
            job_id = self._remote.create_job(pause_triggers(job.body))
            self._report(f"job {job.key}: created")
        else:
            job_id = job.id
            self._remote.reset_job(job_id, pause_triggers(job.body))
        stop_request_files = set(job.request_files)
        # `restarts`: the active runs are replaced. They may poll the stop-request paths of the old release.
        if job.restarts and deployed:
            stop_request_files |= set(deployed.request_files)
        self._record(job_id, job, stop_request_files, is_paused=True, needs_restart=job.restarts)
        self._remote.set_permissions(job_id, job.grants)
        if job.restarts:
            drain(job_id, job.key, stop_request_files, self._target, self._options.timeouts, self._report)
        return self._new_watch(job, job_id)

    def _new_watch(self, job: JobPlan, job_id: int) -> JobWatch:
        """Return the watch for the job's new runs: those that do not exist yet, and active ones of the new release.

        (An interrupted attempt may have started a run of the new release.)
        """
        runs = self._remote.list_runs(job_id)
        new = {run.id for run in runs if run.is_active and run.uses(self._release.id)}
        beats = [] if new else read_heartbeats(job.heartbeat_files, self._target)
        return JobWatch(
            job.key,
            job_id,
            self._release.id,
            job.heartbeat_files,
            {run.id for run in runs} - new,
            {beat.run for beat in beats},
            self._target,
            self._options.timeouts,
            self._report,
        )

    def _delete(self, job: JobPlan) -> None:
        """Drain and delete the job if it exists, and remove it from the state."""
        if job.id is not None:
            deployed = self._state.jobs.get(job.key)
            delete_job(job.id, job.key, deployed, self._target, self._options.timeouts, self._report)
        self._state = self._store.write(self._state.without_job(job.key))

    def _resume(self, job: JobPlan, watch: JobWatch) -> Iterator[Problem]:
        """Send the job with its final triggers, and wait until it works.

        If the plan restarts the job and no trigger starts the new run, start it. A job without a new run, such as a
        stopped one, is not waited for. If the job does not work in time, restore it and yield the problem.
        """
        job_id = watch.job_id
        self._remote.reset_job(job_id, job.final_body)
        is_run_expected = has_active_continuous_trigger(job.final_body)  # the platform starts the run
        if job.restarts and not is_run_expected and not job.stopped:
            self._remote.start_run(job_id, self._run_token(job_id))
            is_run_expected = True
        failure = watch.wait() if is_run_expected else ""
        if failure:
            yield self._restore(job, watch, failure)
            return
        self._record(job_id, job, job.request_files, is_paused=job.stopped)
        if is_run_expected:
            self._watches[job.key] = watch
        else:
            self._report(f"job {job.key}: {'ready' if job.id is None else 'updated'}")

    def _watch(self) -> Iterator[Problem]:
        """Watch the jobs that work; restore those that fail and yield their problems."""
        jobs = {job.key: job for job in self._plan.jobs}
        for key, failure in watch_jobs(list(self._watches.values()), self._options.timeouts, self._report).items():
            yield self._restore(jobs[key], self._watches[key], failure)

    def _restore(self, job: JobPlan, watch: JobWatch, failure: str) -> Problem:
        """Restore the job as it was before the deployment, or leave it paused. Return the problem.

        The job is left paused if it is new, or if its earlier release cannot read the state that the new one wrote.
        """
        assert self._state.intent is not None
        job_id, previous = watch.job_id, self._state.intent.previous_jobs.get(job.key)
        self._remote.reset_job(job_id, pause_triggers(previous.body if previous else job.body))
        # Without request files, the runs of the new release are cancelled at once.
        drain(job_id, job.key, (), self._target, self._options.timeouts, self._report)
        refusing = self._refusing_steps(job, previous) if previous else []
        if previous is None or refusing:
            self._remote.reset_job(job_id, pause_triggers(job.body))
            self._record(job_id, job, job.request_files, is_paused=True)
        else:
            self._send_back(job, job_id, previous)
        return restore.problem(job.key, job_id, self._target, self._release.id, failure, previous, refusing)

    def _refusing_steps(self, job: JobPlan, previous: DeployedJob) -> list[StepPlan]:
        return restore.refusing_steps(previous.release, self._release, job.body, job.heartbeat_files, self._target)

    def _send_back(self, job: JobPlan, job_id: int, previous: DeployedJob) -> None:
        """Send the job as it was before the deployment, and start its run if it had one."""
        self._remote.reset_job(job_id, previous.sent_body)
        if job.restarts and not has_active_continuous_trigger(previous.sent_body) and not job.stopped:
            # another token: the state has not been written since the first start
            self._remote.start_run(job_id, f"{self._run_token(job_id)}-back")
        restored = replace(previous, returned_settings=self._returned_settings(job_id))
        self._state = self._store.write(self._state.with_job(job.key, restored))

    def _write_history(self, failure: str) -> None:
        """Record the finished deployment. `failure` is empty if all jobs run as planned."""
        manifest, options = self._release.manifest, self._options
        entry = HistoryEntry(
            number=1 + max((entry.number for entry in self._state.history), default=0),
            command=options.command,
            release=self._release.id,
            at=timestamp(),
            by=self._target.user,
            promoted_from=options.promoted_from,
            commit=manifest.commit,
            dirty=manifest.dirty,
            outcome=failure or "done",
        )
        release = self._state.release if failure else self._release.id
        self._state = self._store.write(replace(self._state.with_entry(entry), release=release))

    def _delete_old_releases(self) -> None:
        """Delete all releases except the last deployed ones and those that a job or an active run uses."""
        kept = {*self._state.deployed_releases()[: self._options.keep], self._state.release}
        kept |= {job.release for job in self._state.jobs.values()}
        existing = set(self._remote.list_directory(f"{self._target.root}/releases"))
        if existing - kept:
            jobs = self._state.jobs.values()
            runs = [run for job in jobs for run in self._remote.list_runs(job.id, active=True)]
            kept |= {release for release in existing for run in runs if run.references(release)}
            deleted = upload.delete_releases(self._target, existing - kept)
            if deleted:
                self._report(f"deleted releases older than the last {self._options.keep}: {', '.join(deleted)}")

    # ── The state of a job ────────────────────────────────────────────────────────────────────────────

    def _record(
        self, job_id: int, job: JobPlan, request_files: Iterable[str], *, is_paused: bool, needs_restart: bool = False
    ) -> None:
        """Write the job to the state as it was just sent, with the settings that the platform returns for it."""
        deployed = DeployedJob(
            id=job_id,
            release=self._release.id,
            body=job.body,
            is_paused=is_paused,
            returned_settings=self._returned_settings(job_id),
            grants=job.grants,
            request_files=tuple(sorted(request_files)),
            heartbeat_files=job.heartbeat_files,
            runs_continuously=job.runs_continuously,
            needs_restart=needs_restart,
        )
        self._state = self._store.write(self._state.with_job(job.key, deployed))

    def _run_token(self, job_id: int) -> str:
        """Return the idempotency token of a run. The token stays the same until the state is written again."""
        return f"{self._state.lineage}-{self._state.serial}-{job_id}"

    def _returned_settings(self, job_id: int) -> JobBody:
        job = self._remote.get_job(job_id)
        return job.settings if job else {}
