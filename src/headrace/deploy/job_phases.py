"""What a deployment does with one job: send it paused, send it with its triggers, wait until it works, restore it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.deploy import restore
from headrace.deploy.deploy_state import DeployedJob, has_active_continuous_trigger, pause_triggers
from headrace.deploy.deployment import Deployment
from headrace.deploy.drain import delete_job, drain
from headrace.deploy.health import read_heartbeats
from headrace.deploy.job_watch import JobWatch
from headrace.deploy.plan import JobPlan
from headrace.errors import Problem


def send_paused_and_drain(deployment: Deployment, job: JobPlan) -> JobWatch:
    """Create or update the job with paused triggers; drain its active runs if the plan replaces them.

    Return the watch for its new runs.
    """
    remote, deployed = deployment.target.remote, deployment.state.jobs.get(job.key)
    if job.id is None:
        deployment.store.require_lock()
        job_id = remote.create_job(pause_triggers(job.body))
        deployment.report(f"job {job.key}: created")
    else:
        job_id = job.id
        deployment.reset_job(job_id, pause_triggers(job.body))
    stop_request_files = set(job.request_files)
    # `restarts`: the active runs are replaced. They may poll the stop-request paths of the old release.
    if job.restarts and deployed:
        stop_request_files |= set(deployed.request_files)
    deployment.record(job_id, job, stop_request_files, is_paused=True, needs_restart=job.restarts)
    if job.id is not None or job.grants:  # a new job has only an owner
        remote.set_permissions(job_id, job.grants)
    if job.restarts:
        drain(job_id, job.key, stop_request_files, deployment.target, deployment.options.timeouts, deployment.report)
    return new_watch(deployment, job, job_id)


def new_watch(deployment: Deployment, job: JobPlan, job_id: int) -> JobWatch:
    """Return the watch for the job's new runs: those that do not exist yet, and active ones of the new release.

    (An interrupted attempt may have started a run of the new release.)
    """
    target, release = deployment.target, deployment.release.id
    # The platform starts the runs of a continuous job, and the deployment those of other jobs whose run it replaces.
    expects_run = (job.restarts and not job.stopped) or has_active_continuous_trigger(job.final_body)
    runs = target.remote.list_runs(job_id) if expects_run else []
    new = {run.id for run in runs if run.is_active and run.uses(release)}
    beats = [] if new or not expects_run else read_heartbeats(job.heartbeat_files, target)
    return JobWatch(
        job.key,
        job_id,
        release,
        job.heartbeat_files,
        {run.id for run in runs} - new,
        {beat.run for beat in beats},
        target,
        deployment.options.timeouts,
        deployment.report,
        expects_run,
    )


def delete(deployment: Deployment, job: JobPlan) -> None:
    """Drain and delete the job if it exists, and remove it from the state."""
    if job.id is not None:
        deployment.store.require_lock()
        deployed, timeouts = deployment.state.jobs.get(job.key), deployment.options.timeouts
        delete_job(job.id, job.key, deployed, deployment.target, timeouts, deployment.report)
    deployment.write(deployment.state.without_job(job.key))


def resume(deployment: Deployment, job: JobPlan, watch: JobWatch) -> Iterator[Problem]:
    """Send the job with its final triggers, and wait until it works.

    If the plan restarts the job and no trigger starts the new run, start it. A job without a new run, such as a stopped
    one, is not waited for. If the job does not work in time, restore it and yield the problem.
    """
    deployment.reset_job(watch.job_id, job.final_body)
    if job.restarts and not has_active_continuous_trigger(job.final_body) and not job.stopped:
        deployment.start_run(watch.job_id)
    failure = watch.wait() if watch.expects_run else ""
    if failure:
        yield restore_job(deployment, job, watch, failure)
        return
    deployment.record(watch.job_id, job, job.request_files, is_paused=job.stopped)
    if not watch.expects_run:
        deployment.report(f"job {job.key}: {'ready' if job.id is None else 'updated'}")


def restore_job(deployment: Deployment, job: JobPlan, watch: JobWatch, failure: str) -> Problem:
    """Restore the job as it was before the deployment, or leave it paused. Return the problem.

    The job is left paused if it is new, or if its earlier release cannot read the state that the new one wrote.
    """
    target, job_id, previous = deployment.target, watch.job_id, deployment.previous_jobs.get(job.key)
    deployment.reset_job(job_id, pause_triggers(previous.body if previous else job.body))
    # Without request files, the runs of the new release are cancelled at once.
    drain(job_id, job.key, (), target, deployment.options.timeouts, deployment.report)
    refusing = restore.refusing_steps(previous, deployment.release, job, target) if previous else []
    if previous is None or refusing:
        deployment.reset_job(job_id, pause_triggers(job.body))
        deployment.record(job_id, job, job.request_files, is_paused=True)
    else:
        _send_back(deployment, job, job_id, previous)
    return restore.problem(job, job_id, target, deployment.release.id, failure, previous, refusing)


def _send_back(deployment: Deployment, job: JobPlan, job_id: int, previous: DeployedJob) -> None:
    """Send the job as it was before the deployment, and start its run if it had one."""
    deployment.reset_job(job_id, previous.sent_body)
    if job.restarts and not has_active_continuous_trigger(previous.sent_body) and not job.stopped:
        deployment.start_run(job_id, attempt="-back")
    restored = replace(previous, returned_settings=deployment.returned_settings(job_id))
    deployment.write(deployment.state.with_job(job.key, restored))
