"""The desired jobs of an environment: the jobs that databricks.yml defines, resolved for one target and one release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.checkpoints.heartbeat import heartbeat_file
from headrace.checkpoints.stop_request import request_file
from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Job, Target, resolve_jobs
from headrace.config.databricks.references import resolve_references
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.environment_files import read_environment
from headrace.config.load import sort_problems
from headrace.config.models import Environment
from headrace.config.pipeline_files import PipelineDraft, read_pipelines
from headrace.deploy.deploy_state import TRIGGERS, Grants, JobBody, pause_triggers
from headrace.deploy.deploy_target import DeployTarget
from headrace.errors import ConfigurationError, Problem
from headrace.release.releases import REQUIREMENTS, Release

TAG = "headrace"  # key of the job tag whose value is bundle/environment/job
BOUNDED_TRIGGERS = ("available_now", "once")
ABSOLUTE_PATH_OR_URI = re.compile(r"/|[\w+.-]+:/")


@dataclass(frozen=True)
class DesiredJob:
    """A job as a release defines it."""

    body: JobBody
    grants: Grants
    request_files: tuple[str, ...]  # paths of the stop requests that its runs poll
    heartbeat_files: tuple[str, ...]  # paths of the heartbeats of its steps; empty if its runs write none
    runs_continuously: bool  # its runs do not end by themselves
    checkpoints: tuple[str, ...] = ()  # the directories of the checkpoints of its pipelines


class PipelineCall(NamedTuple):
    """A task's call of a Headrace entry point: pipeline, steps, and the values that the task passes with `--value`."""

    pipeline: str
    steps: tuple[str, ...]
    values: dict[str, str]


def desired_jobs(release: Release, target: DeployTarget) -> dict[str, DesiredJob]:
    """Return job key -> job for all jobs that the release defines for the environment."""
    resources = read_resources(release.directory)
    if target.name not in resources.targets:
        fix = "build a newer release, whose databricks.yml has the target"
        problem = Problem("databricks.yml", f"release {release.id} has no target {target.name!r}", fix)
        raise ConfigurationError.of([problem])
    definition = resources.targets[target.name]
    jobs, problems = resolve_jobs(resources, definition)
    if problems := resources.problems + problems:
        raise ConfigurationError.of(sort_problems(problems))
    drafts = {draft.name: draft for draft in read_pipelines(release.directory)[0]}
    return {job.key: _desired_job(job, definition, release, target, drafts) for job in jobs}


def _desired_job(
    job: Job, definition: Target, release: Release, target: DeployTarget, drafts: Mapping[str, PipelineDraft]
) -> DesiredJob:
    reference_values = {
        "workspace.host": target.remote.name,
        "workspace.root_path": target.root,
        "workspace.file_path": target.release_path(release.id),
        "workspace.current_user.userName": target.user,
        "workspace.current_user.short_name": target.short_name,
    }
    resolved = resolve_references(job.body, reference_values)
    grants = tuple(_grant(permission) for permission in (*definition.permissions, *resolved.pop("permissions", ())))
    request_files, heartbeat_files = set(), set()
    checkpoints = set()
    is_any_unbounded = False  # whether any called pipeline has an unbounded trigger
    for call in _pipeline_calls(job, resolved, drafts):
        environment = _read_environment(release, target.name, call.values)
        checkpoints.add(checkpoint_directory(environment, call.pipeline))
        request_files.add(request_file(environment, call.pipeline))
        heartbeat_files |= {heartbeat_file(environment, call.pipeline, step) for step in call.steps}
        is_any_unbounded = is_any_unbounded or _has_unbounded_trigger(environment)
    return DesiredJob(
        body=_body(job.key, resolved, definition, release, target),
        grants=grants,
        request_files=tuple(sorted(filter(None, request_files))),
        heartbeat_files=tuple(sorted(filter(None, heartbeat_files))) if release.manifest.heartbeats else (),
        runs_continuously="continuous" in resolved or is_any_unbounded,
        checkpoints=tuple(sorted(checkpoints)),
    )


def checkpoint_directory(environment: Environment, pipeline: str) -> str:
    """Return the directory with the checkpoints of a pipeline's steps."""
    return f"{environment.checkpoints.rstrip('/')}/{pipeline}"


def _body(key: str, resolved: JobBody, definition: Target, release: Release, target: DeployTarget) -> JobBody:
    """Return the body to send. Settings that matter to a stream are explicit and override the platform's defaults."""
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
    if grant.get("permission_level") == "CAN_RUN":  # the name in databricks.yml; the Permissions API has another one
        grant["permission_level"] = "CAN_MANAGE_RUN"
    return grant


def _task(task: Mapping[str, Any], wheels: list[str], requirements: str) -> JobBody:
    """Return the task with the release's wheels and requirements instead of local libraries such as dist/*.whl.

    Return a serverless task and a task that calls no wheel unchanged.
    """
    loop = task.get("for_each_task")
    if loop:
        return {**task, "for_each_task": {**loop, "task": _task(loop["task"], wheels, requirements)}}
    is_serverless = "environment_key" in task  # its environment has the libraries
    if "python_wheel_task" not in task or is_serverless:
        return dict(task)
    libraries = task.get("libraries", ())
    kept = [library for library in libraries if not _is_bundle_file(library.get("whl") or library.get("requirements"))]
    return {**task, "libraries": [*kept, {"requirements": requirements}, *({"whl": wheel} for wheel in wheels)]}


def _serverless_environment(environment: Mapping[str, Any], wheels: list[str], requirements: str) -> JobBody:
    """Return an environment of serverless tasks with the release's wheels and requirements instead of local wheels."""
    spec = environment.get("spec", {})
    dependencies = spec.get("dependencies", ())
    kept = [
        dependency for dependency in dependencies if not (dependency.endswith(".whl") and _is_bundle_file(dependency))
    ]
    return {**environment, "spec": {**spec, "dependencies": [*kept, f"-r {requirements}", *wheels]}}


def _is_bundle_file(path: str | None) -> bool:
    """Return whether a library is a file of the bundle: its path is relative. False if `path` is None."""
    return path is not None and not ABSOLUTE_PATH_OR_URI.match(path)


# ── Pipelines, environments and triggers of a job ─────────────────────────────────────────────────────


def _pipeline_calls(job: Job, body: JobBody, drafts: Mapping[str, PipelineDraft]) -> list[PipelineCall]:
    """Return the call of each task that runs a pipeline. `body` is the body of the job with resolved references."""
    calls = []
    for call in find_task_calls(Job(job.key, body, job.locations, job.target)):
        pipeline = call.parameter("pipeline")
        if pipeline is not None:
            assignments = (parameter.value.partition("=") for parameter in call.all_parameters("value"))
            values = {name: value for name, _, value in assignments}
            calls.append(PipelineCall(pipeline.value, call.steps(drafts), values))
    return calls


def _read_environment(release: Release, name: str, values: dict[str, str]) -> Environment:
    """Return an environment of the release; raise ConfigurationError if the environment is not valid.

    `values` are those that a task passes with `--value`. Required values may be missing.
    """
    draft, problems = read_environment(release.directory, name, values, lenient=True)
    if draft.environment is None:
        raise ConfigurationError.of(problems)
    return draft.environment


def _has_unbounded_trigger(environment: Environment) -> bool:
    """Return whether any trigger of the environment is unbounded, even one for a step of another pipeline."""
    return any(trigger not in BOUNDED_TRIGGERS for trigger in (environment.trigger, *environment.triggers.values()))
