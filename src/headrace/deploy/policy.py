"""Rules for deployments: production needs committed code and service principals; deletions need a confirmation."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from headrace.config.checks.compute_checks import check_compute
from headrace.config.databricks.job_definitions import Job
from headrace.config.locations import KeyLocations
from headrace.deploy.deploy_state import has_active_trigger
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.plan import Plan
from headrace.deploy.step_diff import pipelines_of
from headrace.errors import DeploymentError, Problem
from headrace.release.releases import Release


def require_allowed(
    plan: Plan, release: Release, target: DeployTarget, *, deletable: Collection[str], any_identity: bool
) -> None:
    """Raise DeploymentError with a problem for each rule that the plan breaks.

    `deletable` has the keys of the jobs that may be deleted. In production, jobs must run as service principals unless
    `any_identity` is set.
    """
    problems = [*_production_problems(plan, release, target, any_identity=any_identity), *_refused_steps(plan)]
    for job in plan.jobs:
        for conflict in job.conflicts:
            fix = f"delete it, or take it over: --adopt {job.key}"
            problems.append(Problem(plan.host, f"job {job.key!r}: {conflict}; both would run", fix))
        if job.deletes_existing_job and job.key not in deletable:
            message = f"job {job.key!r} would be deleted: the release does not define it"
            fix = f"to delete it, pass --delete {job.key}; its tables and checkpoints stay"
            problems.append(Problem(f"{plan.host}: job {job.id}", message, fix))
    if problems:
        raise DeploymentError.of(problems)


def require_supported_compute(plan: Plan) -> None:
    """Raise DeploymentError if a job would run on compute on which Headrace does not work."""
    problems = [
        Problem(f"{plan.host}: job {job.key}", problem.message, problem.fix)
        for job in plan.jobs
        for problem in check_compute(Job(job.key, job.body, KeyLocations("")))
    ]
    if problems:
        raise DeploymentError.of(problems)


def is_production(target: DeployTarget) -> bool:
    """Return whether the target's mode is production."""
    return target.definition.mode == "production"


def _refused_steps(plan: Plan) -> Iterator[Problem]:
    """Yield the steps that would refuse to start in a job that the deployment or its trigger starts.

    A job that a user has stopped may be deployed: its steps can be reset before it is started.
    """
    jobs = [job for job in plan.jobs if job.action != "delete" and (job.restarts or has_active_trigger(job.final_body))]
    for step in [step for step in plan.steps if step.fix]:
        for job in [job for job in jobs if step.pipeline in pipelines_of(job.body)]:
            sentences = "; ".join(change.sentence for change in step.changes)
            start = f"then deploy again and start the job: headrace start {job.key} --env {plan.environment}"
            yield Problem(
                f"{plan.host}: job {job.key}",
                f"step {step.name} cannot continue its checkpoint of release {plan.deployed_release}: {sentences}",
                f"{step.fix} (a reset stops the job; {start})",
            )


def _production_problems(
    plan: Plan, release: Release, target: DeployTarget, *, any_identity: bool
) -> Iterator[Problem]:
    if not is_production(target):
        return
    if release.manifest.dirty:
        message = f"release {release.id} was built from a tree with uncommitted changes"
        fix = "commit the changes and build the release again; its manifest must name the commit"
        yield Problem(str(release.directory), message, fix)
    for job in plan.jobs:
        run_as = job.body.get("run_as") or {}
        if job.action != "delete" and not any_identity and "service_principal_name" not in run_as:
            user = run_as.get("user_name") or "the user who deploys it"
            yield Problem(
                f"databricks.yml: targets.{target.name}",
                f"job {job.key!r} would run as {user}, not as a service principal",
                "give the target run_as: {service_principal_name: …}, or pass --any-identity",
            )
