"""Read the current jobs of an environment and plan what a release would change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headrace.config.pipeline_files import read_pipelines
from headrace.deploy import plan_diff, release_diff, step_diff, upload
from headrace.deploy.deploy_state import DeployedJob, State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.desired_job import TAG, DesiredJob, desired_jobs
from headrace.deploy.foreign_jobs import ForeignJob, find_foreign_jobs
from headrace.deploy.plan import JobPlan, Plan
from headrace.deploy.plan_diff import CurrentJob
from headrace.deploy.remote import RemoteJob
from headrace.errors import DeploymentError
from headrace.release import working_tree
from headrace.release.manifest import Manifest
from headrace.release.releases import Release


def plan(release: Release, target: DeployTarget, state: State, adopt: Collection[str] = ()) -> Plan:
    """Return the plan that deploys a release to an environment, whose recorded state is `state`.

    `adopt` has the keys of jobs for which the deployment takes over a job that Headrace does not manage.
    """
    desired = {
        key: _with_run_as(job, state.jobs.get(key), target) for key, job in desired_jobs(release, target).items()
    }
    existing, others = find_jobs(target, state, desired.keys())
    foreign = find_foreign_jobs({key: job for key, job in desired.items() if key not in existing}, target, others)
    taken_over = {key: _job_to_adopt(key, foreign.get(key, ()), target) for key in adopt if key not in existing}
    deployed_manifest = upload.read_manifest(state.release, target) if state.release != release.id else None
    new_plan = plan_diff.compare(
        environment=target.name,
        host=target.remote.name,
        root=target.root,
        state=state,
        manifest=release.manifest,
        deployed_manifest=deployed_manifest,
        desired=desired,
        current={key: _current_job(job, release, target) for key, job in {**existing, **taken_over}.items()},
    )
    new_plan = replace(new_plan, jobs=tuple(_with_foreign(job, foreign, taken_over) for job in new_plan.jobs))
    if state.release == release.id:
        return replace(new_plan, damaged_files=tuple(upload.damaged_files(release, target)))
    if deployed_manifest is not None:
        changes = release_diff.configuration_changes(deployed_manifest, release, target)
        root, commits = release.directory.parents[2], (deployed_manifest.commit, release.manifest.commit)
        since = working_tree.commits_between(root, *commits)
        new_plan = replace(new_plan, configuration=changes, commits=since)
    return _with_steps(new_plan, release, deployed_manifest) if state.release else new_plan


def _with_steps(new_plan: Plan, release: Release, deployed: Manifest | None) -> Plan:
    """Return the plan with the comparison of the steps of the release with those of the deployed one."""
    reason = step_diff.why_not_comparable(deployed, release.manifest)
    if deployed is None or reason:
        return replace(new_plan, steps_not_compared=reason)
    drafts, _ = read_pipelines(release.directory)
    accepted = {(draft.name, step.name): step.accept for draft in drafts for step in draft.steps.values()}
    steps = step_diff.compare_steps(deployed, release.manifest, new_plan.environment, accepted)
    return replace(new_plan, steps=steps)


def _job_to_adopt(key: str, foreign: Sequence[ForeignJob], target: DeployTarget) -> RemoteJob:
    """Return the job that a deployment takes over. Raise DeploymentError unless there is exactly one such job."""
    unmanaged = [each for each in foreign if not each.job.tag]
    if len(unmanaged) == 1 and (job := target.remote.get_job(unmanaged[0].job.id)):
        return job
    if unmanaged:
        message, fix = f"several jobs could be taken over for {key!r}", "delete all but one of them"
    else:
        message, fix = f"there is no job to take over for {key!r}", "omit --adopt"
    where = "; ".join(each.description for each in foreign) or target.remote.name
    raise DeploymentError(message, where=where, fix=fix)


def _with_foreign(
    job: JobPlan, foreign: Mapping[str, Sequence[ForeignJob]], taken_over: Mapping[str, RemoteJob]
) -> JobPlan:
    """Return the plan of a job with the foreign jobs that it conflicts with, or with the one that it takes over."""
    if job.key in taken_over:
        others = [each.description for each in foreign[job.key] if each.job.id != taken_over[job.key].id]
        return replace(job, adopted=False, taken_over=True, conflicts=tuple(others))
    return replace(job, conflicts=tuple(each.description for each in foreign.get(job.key, ())))


def _with_run_as(desired: DesiredJob, deployed: DeployedJob | None, target: DeployTarget) -> DesiredJob:
    """Return the desired job, with a `run_as` added if only the deployed job has one.

    The platform keeps the old `run_as` of a job that is sent without one. If that is a user, the desired job gets the
    same `run_as`, so that the plan shows what the job will have. If it is a service principal, the desired job gets the
    deploying user instead, so that a service principal that the bundle no longer names does not stay on the job.
    """
    deployed_run_as = deployed.body.get("run_as") if deployed else None
    if not deployed_run_as or "run_as" in desired.body:
        return desired
    run_as = deployed_run_as if "user_name" in deployed_run_as else {"user_name": target.user}
    return replace(desired, body={**desired.body, "run_as": run_as})


def find_jobs(
    target: DeployTarget, state: State, keys: Collection[str] = ()
) -> tuple[dict[str, RemoteJob], list[RemoteJob]]:
    """Return the environment's existing jobs by key: jobs in the state, and jobs that unfinished deployments created.

    Jobs of unfinished deployments are found by their tag, if the state has no existing job with one of the `keys`, or
    with a key in the state's intent. For this all jobs are listed, with their tasks; return the others too.
    """
    jobs = {}
    for key, deployed in state.jobs.items():
        job = target.remote.get_job(deployed.id)
        if job is not None:
            _require_same_environment(job, target)
            jobs[key] = job
    missing = {*keys, *(state.intent.creates if state.intent else ())} - jobs.keys()
    listed = target.remote.list_jobs(with_tasks=True) if missing else []
    for key in sorted(missing):
        found = _find_by_tag(key, listed, target)
        if found is not None:
            jobs[key] = found
    managed = {job.id for job in jobs.values()}
    return jobs, [job for job in listed if job.id not in managed]


def _require_same_environment(job: RemoteJob, target: DeployTarget) -> None:
    """Raise DeploymentError if the tag of a job in the state names another environment.

    In this case, two environments use the same state file.
    """
    tag_parts = job.tag.split("/")  # bundle, environment, job
    if len(tag_parts) < 2 or tag_parts[1] == target.name:
        return
    raise DeploymentError(
        f"job {job.id} belongs to environment {tag_parts[1]!r}, whose state file environment {target.name!r} also uses",
        where=f"{target.remote.name}: {target.root}",
        fix="give each target its own workspace.root_path",
    )


def _find_by_tag(key: str, listed: Sequence[RemoteJob], target: DeployTarget) -> RemoteJob | None:
    """Return the job with this environment's tag for `key`, or None.

    Raise DeploymentError if a deployment with another state file created the job.
    """
    tag = target.job_tag(key)
    matches = [job for job in listed if job.tag == tag]
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
    runs_other_release = any(not run.uses(release.id) for run in active)
    return CurrentJob(job, is_running=bool(active), runs_other_release=runs_other_release)
