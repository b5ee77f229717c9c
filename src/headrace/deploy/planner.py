"""Read the current jobs of an environment and plan what a release would change."""

from __future__ import annotations

from dataclasses import replace

from headrace.deploy import plan_diff, upload
from headrace.deploy.deploy_state import DeployedJob, State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.desired_job import TAG, DesiredJob, desired_jobs
from headrace.deploy.plan import Plan
from headrace.deploy.plan_diff import CurrentJob
from headrace.deploy.remote import RemoteJob
from headrace.errors import DeploymentError
from headrace.release.releases import Release


def plan(release: Release, target: DeployTarget, state: State) -> Plan:
    """Return what the release would change in an environment."""
    upload.require_downloadable(release, target)
    desired = {
        key: _with_run_as(job, state.jobs.get(key), target) for key, job in desired_jobs(release, target).items()
    }
    return plan_diff.compare(
        environment=target.name,
        host=target.remote.name,
        root=target.root,
        state=state,
        manifest=release.manifest,
        deployed_manifest=upload.read_manifest(state.release, target) if state.release != release.id else None,
        desired=desired,
        current={key: _current_job(job, release, target) for key, job in find_jobs(target, state, desired).items()},
    )


def _with_run_as(desired: DesiredJob, deployed: DeployedJob | None, target: DeployTarget) -> DesiredJob:
    """Set `run_as` if the release no longer does, because the platform would keep the old value.

    A user stays; a service principal is replaced by the deploying user.
    """
    deployed_run_as = deployed.body.get("run_as") if deployed else None
    if not deployed_run_as or "run_as" in desired.body:
        return desired
    run_as = deployed_run_as if "user_name" in deployed_run_as else {"user_name": target.user}
    return replace(desired, body={**desired.body, "run_as": run_as})


def find_jobs(target: DeployTarget, state: State, desired: dict[str, DesiredJob] | None = None) -> dict[str, RemoteJob]:
    """Return the environment's existing jobs: those in the state, and those that unfinished deployments created."""
    jobs = {}
    for key, deployed in state.jobs.items():
        job = target.remote.get_job(deployed.id)
        if job is not None:
            _require_same_environment(job, target)
            jobs[key] = job
    names = {key: {str(job.body["name"])} for key, job in (desired or {}).items() if key not in jobs}
    for key, name in state.intent.creates.items() if state.intent else ():
        if key not in jobs:
            names.setdefault(key, set()).add(name)
    for key, possible_names in names.items():
        tagged = _find_by_tag(key, possible_names, target)
        if tagged is not None:
            jobs[key] = tagged
    return jobs


def _require_same_environment(job: RemoteJob, target: DeployTarget) -> None:
    """Raise DeploymentError if a job of the state belongs to another environment, which uses the same state file."""
    if job.tag.split("/")[1:2] in ([], [target.name]):
        return
    raise DeploymentError(
        f"job {job.id} has the tag {job.tag!r}, but environment {target.name!r} uses the same state file",
        where=f"{target.remote.name}: {target.root}",
        fix="give each target its own workspace.root_path",
    )


def _find_by_tag(key: str, names: set[str], target: DeployTarget) -> RemoteJob | None:
    """Return the job with this environment's tag that is missing in the state, if there is one."""
    tag = target.job_tag(key)
    matches = [job for name in sorted(names) for job in target.remote.list_jobs(name) if job.tag == tag]
    if not matches:
        return None
    first = min(matches, key=lambda job: job.id)
    state_file = (first.settings.get("deployment") or {}).get("metadata_file_path", "")
    if state_file != f"{target.root}/state.json":
        raise DeploymentError(
            f"job {key!r} of environment {target.name!r} belongs to another deployment, whose state is {state_file}",
            where=f"{target.remote.name}: job {first.id}, tag {TAG}={tag}",
            fix="give the target one workspace.root_path for all users who deploy it",
        )
    return target.remote.get_job(first.id)


def _current_job(job: RemoteJob, release: Release, target: DeployTarget) -> CurrentJob:
    active = target.remote.list_runs(job.id, active=True)
    return CurrentJob(job, bool(active), any(not run.uses(release.id) for run in active))
