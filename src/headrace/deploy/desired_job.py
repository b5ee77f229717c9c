"""The desired jobs of an environment: the jobs of databricks.yml, resolved for one target and one release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.checkpoints.stop_request import request_file
from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Job, Target, resolve_jobs
from headrace.config.databricks.references import resolve_references
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.environment_files import read_environment
from headrace.config.load import sort_problems
from headrace.config.models import Environment
from headrace.deploy.deploy_state import TRIGGERS, Grants, JobBody, pause_triggers
from headrace.deploy.deploy_target import DeployTarget
from headrace.errors import ConfigurationError, Problem
from headrace.release.releases import REQUIREMENTS, Release

TAG = "headrace"  # key of the job tag that names bundle, environment and job
ENDING_TRIGGERS = ("available_now", "once")


@dataclass(frozen=True)
class DesiredJob:
    """A job as a release defines it."""

    body: JobBody
    grants: Grants
    request_files: tuple[str, ...]  # the files that ask its runs to stop
    runs_continuously: bool  # its runs do not end by themselves


def desired_jobs(release: Release, target: DeployTarget) -> dict[str, DesiredJob]:
    """Return the complete jobs that a release defines for an environment."""
    resources = read_resources(release.directory)
    if target.name not in resources.targets:
        fix = "build a newer release, whose databricks.yml has the target"
        problem = Problem("databricks.yml", f"release {release.id} has no target {target.name!r}", fix)
        raise ConfigurationError.of([problem])
    definition = resources.targets[target.name]
    jobs, problems = resolve_jobs(resources, definition)
    if problems := resources.problems + problems:
        raise ConfigurationError.of(sort_problems(problems))
    return {job.key: _desired_job(job, definition, release, target) for job in jobs}


def _desired_job(job: Job, definition: Target, release: Release, target: DeployTarget) -> DesiredJob:
    reference_values = {
        "workspace.host": target.remote.name,
        "workspace.root_path": target.root,
        "workspace.file_path": target.release_path(release.id),
        "workspace.current_user.userName": target.user,
        "workspace.current_user.short_name": target.short_name,
    }
    resolved = resolve_references(job.body, reference_values)
    grants = tuple(_grant(permission) for permission in (*definition.permissions, *resolved.pop("permissions", ())))
    calls = _pipeline_calls(job, resolved)
    calls_in = [(_read_environment(release, target.name, values), pipeline) for pipeline, values in calls]
    request_files = {request_file(environment, pipeline) for environment, pipeline in calls_in}
    is_unbounded = any(_has_unbounded_trigger(environment) for environment, _ in calls_in)
    return DesiredJob(
        body=_body(job.key, resolved, definition, release, target),
        grants=grants,
        request_files=tuple(sorted(file for file in request_files if file)),
        runs_continuously="continuous" in resolved or is_unbounded,
    )


def _body(key: str, resolved: JobBody, definition: Target, release: Release, target: DeployTarget) -> JobBody:
    """Return the body to send. Settings that matter to a stream are explicit, not left to the platform's defaults."""
    directory = target.release_path(release.id)
    # The wheels are installed one after the other. Headrace comes first, because the bundle's own wheel requires it.
    paths = sorted(release.manifest.wheels, key=lambda path: (not path.startswith("wheels/headrace-"), path))
    wheels = [f"{directory}/{path}" for path in paths]
    requirements = f"{directory}/{REQUIREMENTS}"
    body = dict(resolved)
    tasks = (_task(task, wheels, requirements) for task in body["tasks"])
    body["tasks"] = sorted(tasks, key=lambda task: str(task["task_key"]))
    if "environments" in body:
        environments = body["environments"]
        body["environments"] = [
            _serverless_environment(environment, wheels, requirements) for environment in environments
        ]
    body["name"] = str(body.get("name", key))
    body["tags"] = {**body.get("tags", {}), TAG: target.job_tag(key)}
    body |= {"format": "MULTI_TASK", "edit_mode": "UI_LOCKED", "max_concurrent_runs": 1}
    body["deployment"] = {"kind": "BUNDLE", "metadata_file_path": f"{target.root}/state.json"}
    body.setdefault("queue", {"enabled": True})
    for trigger in TRIGGERS:
        if trigger in body:
            default = {"pause_status": "PAUSED" if definition.is_development else "UNPAUSED"}
            body[trigger] = {**default, **body[trigger]}
    if definition.is_development:
        body = pause_triggers(body)
        body["name"] = f"[dev {target.short_name}] {body['name']}"
        body["tags"]["dev"] = target.short_name
    if definition.run_as:
        body["run_as"] = dict(definition.run_as)
    return body


def _grant(permission: Mapping[str, str]) -> dict[str, str]:
    """Return a permission of databricks.yml in the form of the Permissions API."""
    grant = {("permission_level" if key == "level" else key): value for key, value in permission.items()}
    if grant.get("permission_level") == "CAN_RUN":  # targets call the level so, the Permissions API of jobs does not
        grant["permission_level"] = "CAN_MANAGE_RUN"
    return grant


def _task(task: Mapping[str, Any], wheels: list[str], requirements: str) -> JobBody:
    """Return the task with the paths of the release's wheels instead of patterns such as dist/*.whl."""
    loop = task.get("for_each_task")
    if loop:
        return {**task, "for_each_task": {**loop, "task": _task(loop["task"], wheels, requirements)}}
    if "python_wheel_task" not in task or "environment_key" in task:
        return dict(task)
    libraries = task.get("libraries", ())
    others = [library for library in libraries if not _is_local(library.get("whl") or library.get("requirements"))]
    return {**task, "libraries": [*others, {"requirements": requirements}, *({"whl": wheel} for wheel in wheels)]}


def _serverless_environment(environment: Mapping[str, Any], wheels: list[str], requirements: str) -> JobBody:
    """Return an environment of serverless tasks with the release's wheels."""
    spec = environment.get("spec", {})
    dependencies = spec.get("dependencies", ())
    others = [dependency for dependency in dependencies if not (dependency.endswith(".whl") and _is_local(dependency))]
    return {**environment, "spec": {**spec, "dependencies": [*others, f"-r {requirements}", *wheels]}}


def _is_local(path: str | None) -> bool:
    """Return whether a library is a file of the bundle, which the release contains, rather than a remote path."""
    return path is not None and not re.match(r"/|[\w+.-]+:/", path)


# ── Pipelines, environments and triggers of a job ─────────────────────────────────────────────────────


def _pipeline_calls(job: Job, body: JobBody) -> list[tuple[str, dict[str, str]]]:
    """Return the pipeline and the values of each task that calls an entry point of Headrace."""
    calls = []
    for call in find_task_calls(Job(job.key, body, job.locations, job.target)):
        pipeline = call.parameter("pipeline")
        if pipeline is not None:
            pairs = (parameter.value.partition("=") for parameter in call.all_parameters("value"))
            calls.append((pipeline.value, {name: value for name, _, value in pairs}))
    return calls


def _read_environment(release: Release, name: str, values: dict[str, str]) -> Environment:
    draft, problems = read_environment(release.directory, name, values, lenient=True)
    if draft.environment is None:
        raise ConfigurationError.of(problems)
    return draft.environment


def _has_unbounded_trigger(environment: Environment) -> bool:
    """Return whether the environment has an unbounded trigger, even if for a step of another pipeline."""
    return any(trigger not in ENDING_TRIGGERS for trigger in (environment.trigger, *environment.triggers.values()))
