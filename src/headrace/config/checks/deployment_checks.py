"""Check the jobs of the selected targets, with the variables of each target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from headrace.config.checks.cluster_checks import check_clusters
from headrace.config.checks.compute_checks import check_compute
from headrace.config.checks.concurrency_checks import check_writers
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

Jobs = dict[str, tuple[Job, ...]]  # by target


def check_deployment(
    root: Path,
    resources: Resources,
    targets: Sequence[str],
    drafts: Sequence[PipelineDraft],
    environments: Sequence[EnvironmentDraft],
    known_environments: Collection[str],
) -> tuple[Jobs, list[Problem]]:
    """Return the jobs of each of the `targets`, and the problems of these jobs.

    `environments` are the environments that were loaded, `known_environments` the names of all environments. A problem
    that several targets have is reported once.
    """
    jobs: Jobs = {}
    problems: dict[str, list[Problem]] = {}
    pipelines = {draft.name: draft for draft in drafts}
    for name in targets:
        target = resources.targets[name]
        environment = next((draft for draft in environments if draft.name == name), None)
        jobs[name], problems[name] = resolve_jobs(resources, target)
        for job in jobs[name]:
            problems[name] += _check_job_of_target(job, root, target, pipelines, environment, known_environments)
        problems[name] += check_writers(jobs[name], pipelines)
    return jobs, list(_merge_problems(problems))


def _check_job_of_target(
    job: Job,
    root: Path,
    target: Target,
    drafts: Mapping[str, PipelineDraft],
    environment: EnvironmentDraft | None,
    known_environments: Collection[str],
) -> Iterator[Problem]:
    """Yield the problems of one job. `environment` is the target's environment; None if it was not loaded."""
    yield from job_grammar().check(job.body, "JobSettings", job.locations, ("resources", "jobs", job.key))
    yield from check_job(job)
    yield from check_clusters(job)
    yield from check_entry_points(job, root)
    yield from check_calls(job, target, drafts, environment, known_environments)
    yield from check_compute(job)
    yield from check_job_identities(job)
    yield from check_job_secrets(job)


def _merge_problems(problems: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Yield each problem once. `problems` has the problems by target.

    If only some targets have a problem, add the names of these targets to its message.
    """
    distinct = dict.fromkeys(problem for target_problems in problems.values() for problem in target_problems)
    for problem in distinct:
        targets = [name for name, target_problems in problems.items() if problem in target_problems]
        if len(targets) == len(problems):
            yield problem
        else:
            yield Problem(problem.where, f"{problem.message} ({format_targets(targets)})", problem.fix)
