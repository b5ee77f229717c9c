"""Check the jobs of all targets that were read, with each target's variables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from headrace.config.checks.cluster_checks import check_clusters
from headrace.config.checks.concurrency_checks import check_serverless, check_writers
from headrace.config.checks.identity_checks import check_job_identities
from headrace.config.checks.job_checks import check_job
from headrace.config.checks.secret_checks import check_job_secrets
from headrace.config.checks.task_call_checks import check_calls, check_entry_points
from headrace.config.databricks.databricks_yml import Resources
from headrace.config.databricks.job_definitions import Job, Target, format_targets, resolve_jobs
from headrace.config.databricks.job_grammar import job_grammar
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem

Jobs = dict[str, tuple[Job, ...]]


def check_deployment(
    root: Path,
    resources: Resources,
    targets: Sequence[str],
    drafts: Sequence[PipelineDraft],
    environments: Sequence[EnvironmentDraft],
    known: Collection[str],
) -> tuple[Jobs, list[Problem]]:
    """Return the jobs of each target, and their problems. A problem that all targets share is reported once.

    `known` are the names of all environments.
    """
    jobs: Jobs = {}
    problems: dict[str, list[Problem]] = {}
    pipelines = {draft.name: draft for draft in drafts}
    for name in targets:
        target = resources.targets[name]
        environment = next((draft for draft in environments if draft.name == name), None)
        jobs[name], problems[name] = resolve_jobs(resources, target)
        for job in jobs[name]:
            problems[name] += _check(job, root, target, pipelines, environment, known)
        problems[name] += check_writers(jobs[name], pipelines)
    return jobs, list(_merge(problems))


def _check(
    job: Job,
    root: Path,
    target: Target,
    drafts: Mapping[str, PipelineDraft],
    environment: EnvironmentDraft | None,
    known: Collection[str],
) -> Iterator[Problem]:
    yield from job_grammar().check(job.body, "JobSettings", job.locations, ("resources", "jobs", job.key))
    yield from check_job(job)
    yield from check_clusters(job)
    yield from check_entry_points(job, root)
    yield from check_calls(job, target, drafts, environment, known)
    yield from check_serverless(job, drafts, environment)
    yield from check_job_identities(job)
    yield from check_job_secrets(job)


def _merge(problems: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Yield each problem once. If only some targets have it, add their names to the message."""
    for problem in dict.fromkeys(problem for of_target in problems.values() for problem in of_target):
        targets = [name for name, of_target in problems.items() if problem in of_target]
        if len(targets) == len(problems):
            yield problem
        else:
            yield Problem(problem.where, f"{problem.message} ({format_targets(targets)})", problem.fix)
