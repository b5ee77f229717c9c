"""Apply a plan. After a crash at any point, the same command finishes the deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.deploy import job_phases, planner, upload
from headrace.deploy.deploy_lock import Report, timestamp
from headrace.deploy.deploy_state import HistoryEntry, Intent, State, has_active_continuous_trigger
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.deployment import ApplyOptions, Deployment
from headrace.deploy.job_watch import JobWatch, watch_jobs
from headrace.deploy.plan import JobPlan, Plan, require_current
from headrace.deploy.recovery import RECOVERED
from headrace.deploy.state_store import StateStore
from headrace.errors import DeploymentError, Problem
from headrace.release.releases import Release


def apply(plan: Plan, release: Release, target: DeployTarget, options: ApplyOptions, report: Report) -> State:
    """Apply exactly this plan and return the new state.

    Raise DeploymentError if another command holds the lock, if the plan is stale, or if a job fails.
    """
    store = StateStore(target)
    with store.locked(options.command, break_lock=options.break_lock, report=report):
        state = store.read()
        adopt = {job.key for job in plan.jobs if job.taken_over}
        require_current(plan, planner.plan(release, target, state, adopt))
        return _run(Deployment(plan, release, target, options, store, report, state))


def _run(deployment: Deployment) -> State:
    """Apply the plan, and return the new state. Raise DeploymentError if jobs fail.

    The state is written before and after changes to jobs.
    """
    changed = [job for job in deployment.plan.jobs if job.action in ("create", "update")]
    unwatched = _unwatched_jobs(deployment)
    _write_intent(deployment, changed)
    _upload_release(deployment)
    watches = {job.key: job_phases.send_paused_and_drain(deployment, job) for job in changed}
    watches |= {job.key: job_phases.new_watch(deployment, job, job.id) for job in unwatched if job.id}
    for job in deployment.plan.jobs:
        if job.action == "delete":
            job_phases.delete(deployment, job)
    problems = [problem for job in changed for problem in job_phases.resume(deployment, job, watches[job.key])]
    problems = problems or list(_watch(deployment, watches))
    _write_history(deployment, "; ".join(problem.message for problem in problems))
    if problems:
        raise DeploymentError.of(problems)
    try:
        _delete_old_releases(deployment)
    except (DeploymentError, KeyboardInterrupt) as error:  # the deployment itself is complete
        reason = error.problems[0].message if isinstance(error, DeploymentError) else "interrupted"
        deployment.report(f"old releases were not deleted, the next deployment tries again: {reason}")
    return replace(deployment.state, intent=None)


def _unwatched_jobs(deployment: Deployment) -> list[JobPlan]:
    """Return the jobs whose runs an interrupted attempt has started, but not watched until the end."""
    intent = deployment.state.intent
    if intent is None or intent.release != deployment.release.id or intent.entry:
        return []
    sent = intent.creates.keys() | intent.previous_jobs.keys()
    unchanged = [job for job in deployment.plan.jobs if job.key in sent and job.action == "unchanged"]
    return [job for job in unchanged if has_active_continuous_trigger(job.final_body)]


def _write_intent(deployment: Deployment, changed: Sequence[JobPlan]) -> None:
    """Record the deployment before its first change."""
    state, command, release = deployment.state, deployment.options.command, deployment.release.id
    interrupted = state.intent or Intent("", "", "", "")  # empty if no deployment was interrupted
    jobs_to_create = {job.key: job.name for job in changed if job.key not in state.jobs}
    current_jobs = {job.key: state.jobs[job.key] for job in changed if job.key in state.jobs}
    intent = Intent(
        command=command,
        release=release,
        at=timestamp(),
        by=deployment.target.user,
        creates={**interrupted.creates, **jobs_to_create},
        # An interrupted deployment's intent has the jobs as they were before any change, so it takes precedence.
        previous_jobs={**current_jobs, **interrupted.previous_jobs},
        lock=deployment.store.lock_id,
        entry=interrupted.entry if (interrupted.command, interrupted.release) == (command, release) else 0,
    )
    deployment.write(replace(state, intent=intent))


def _upload_release(deployment: Deployment) -> None:
    """Upload the release, and grant read access to the users and service principals that its jobs run as."""
    target, release = deployment.target, deployment.release
    upload.upload_release(release, target, deployment.report)
    principals = {tuple(job.body["run_as"].items()) for job in deployment.plan.jobs if job.body.get("run_as")}
    for principal in sorted(principals):
        target.remote.grant_read(target.release_path(release.id), dict(principal))


def _watch(deployment: Deployment, watches: Mapping[str, JobWatch]) -> Iterator[Problem]:
    """Watch the jobs that have a continuous run; restore those that fail and yield their problems."""
    jobs = {job.key: job for job in deployment.plan.jobs}
    watched = [watch for key, watch in watches.items() if watch.expects_run]
    for key, failure in watch_jobs(watched, deployment.options.timeouts, deployment.report).items():
        yield job_phases.restore_job(deployment, jobs[key], watches[key], failure)


def _write_history(deployment: Deployment, failure: str) -> None:
    """Record the finished deployment. `failure` is empty if all jobs work.

    After a success, the intent stays until the lock is released, so that a repetition continues the same deployment.
    """
    state, options, manifest = deployment.state, deployment.options, deployment.release.manifest
    assert state.intent is not None
    if state.intent.entry and not failure:  # an attempt that was interrupted after this write
        return
    entry = HistoryEntry(
        number=1 + max((entry.number for entry in state.history), default=0),
        command=options.command,
        release=deployment.release.id,
        at=timestamp(),
        by=deployment.target.user,
        promoted_from=options.promoted_from,
        commit=manifest.commit,
        dirty=manifest.dirty,
        outcome=failure or "done",
    )
    if failure:
        deployment.write(replace(state.with_entry(entry), intent=None))
    else:
        intent = replace(state.intent, entry=entry.number)
        deployment.write(replace(state.with_entry(entry), intent=intent, release=deployment.release.id))


def _delete_old_releases(deployment: Deployment) -> None:
    """Delete all releases except the last deployed ones, and those that a job or an active run uses.

    Releases that were found after the loss of the state stay: their order is unknown.
    """
    state, target = deployment.state, deployment.target
    kept = {entry.release for entry in state.history if entry.command == RECOVERED}
    kept |= {*state.deployed_releases()[: deployment.options.keep], state.release}
    kept |= {job.release for job in state.jobs.values()}
    existing = set(target.remote.list_directory(f"{target.root}/releases"))
    if existing - kept:
        jobs = state.jobs.values()
        runs = [run for job in jobs for run in target.remote.list_runs(job.id, active=True)]
        kept |= {release for release in existing for run in runs if run.references(release)}
        deployment.store.require_lock()
        deleted = upload.delete_releases(target, existing - kept)
        if deleted:
            deployment.report(f"deleted releases older than the last {deployment.options.keep}: {', '.join(deleted)}")
