"""The jobs of all targets that are read: each job as its target has it, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from headrace.config.checks.cluster_checks import check_clusters
from headrace.config.checks.concurrency_checks import check_serverless, check_writers
from headrace.config.checks.identity_checks import check_job_people
from headrace.config.checks.job_checks import check_job
from headrace.config.checks.secret_checks import check_job_secrets
from headrace.config.checks.task_call_checks import check_calls, check_entry_points
from headrace.config.databricks.databricks_yml import Resources
from headrace.config.databricks.job_definitions import Job, Target, in_targets, jobs_of
from headrace.config.databricks.job_grammar import job_grammar
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

Jobs = dict[str, tuple[Job, ...]]


def check_deployment(
    root: Path,
    resources: Resources,
    targets: Sequence[str],
    drafts: Sequence[Draft],
    environments: Sequence[EnvironmentDraft],
    known: Collection[str],
) -> tuple[Jobs, list[Problem]]:
    """The jobs of some targets, and their problems: one that all of them have is told once."""
    jobs: Jobs = {}
    found: dict[str, list[Problem]] = {}
    pipelines = {draft.name: draft for draft in drafts}
    for name in targets:
        target = resources.targets[name]
        environment = next((draft for draft in environments if draft.name == name), None)
        jobs[name], problems = jobs_of(resources, target)
        for job in jobs[name]:
            problems += _check(job, root, target, pipelines, environment, known)
        found[name] = [*problems, *check_writers(jobs[name], pipelines)]
    return jobs, list(_told_once(found))


def _check(
    job: Job,
    root: Path,
    target: Target,
    drafts: Mapping[str, Draft],
    environment: EnvironmentDraft | None,
    known: Collection[str],
) -> Iterator[Problem]:
    yield from job_grammar().against(job.body, "JobSettings", job.lines, ("resources", "jobs", job.key))
    yield from check_job(job)
    yield from check_clusters(job)
    yield from check_entry_points(job, root)
    yield from check_calls(job, target, drafts, environment, known)
    yield from check_serverless(job, drafts, environment)
    yield from check_job_people(job)
    yield from check_job_secrets(job)


def _told_once(found: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Each problem once; one that only some of the targets have names them."""
    for problem in dict.fromkeys(problem for problems in found.values() for problem in problems):
        some = [name for name, problems in found.items() if problem in problems]
        if len(some) == len(found):
            yield problem
        else:
            yield Problem(problem.where, f"{problem.message} ({in_targets(some)})", problem.fix)
