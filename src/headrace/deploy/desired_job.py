"""The job that is wanted: what databricks.yml says of it, for one environment and one release."""

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
from headrace.deploy.deploy_state import TRIGGERS, Body, Grants, paused
from headrace.deploy.deploy_target import Place
from headrace.errors import ConfigurationError, Problem
from headrace.release.releases import REQUIREMENTS, Release

TAG = "headrace"  # on each job: which bundle, environment and job it is
ENDING = ("available_now", "once")


@dataclass(frozen=True)
class Wanted:
    """A job as a release wants it."""

    body: Body
    grants: Grants
    requests: tuple[str, ...]  # the files by which its runs are asked to stop
    goes_on: bool  # its runs do not end by themselves


def wanted_jobs(release: Release, place: Place) -> dict[str, Wanted]:
    """The jobs that a release has for an environment, each complete."""
    resources = read_resources(release.directory)
    if place.name not in resources.targets:
        problem = Problem("databricks.yml", f"release {release.id} has no target {place.name!r}", "build a newer one")
        raise ConfigurationError.of([problem])
    target = resources.targets[place.name]
    jobs, problems = resolve_jobs(resources, target)
    if problems := resources.problems + problems:
        raise ConfigurationError.of(sort_problems(problems))
    return {job.key: _wanted(job, target, release, place) for job in jobs}


def _wanted(job: Job, target: Target, release: Release, place: Place) -> Wanted:
    late = {
        "workspace.host": place.remote.name,
        "workspace.root_path": place.root,
        "workspace.file_path": place.release(release.id),
        "workspace.current_user.userName": place.user,
        "workspace.current_user.short_name": place.short_name,
    }
    written = resolve_references(job.body, late)
    grants = tuple(_grant(one) for one in (*target.permissions, *written.pop("permissions", ())))
    environments = [_environment(release, place.name, asked) for asked in _values(job, written)]
    requests = {request_file(environment, name) for environment, name in environments}
    return Wanted(
        body=_body(job.key, written, target, release, place),
        grants=grants,
        requests=tuple(sorted(request for request in requests if request)),
        goes_on="continuous" in written or any(_goes_on(environment) for environment, _ in environments),
    )


def _body(key: str, written: Body, target: Target, release: Release, place: Place) -> Body:
    """What is sent: nothing that matters to a stream is left to the platform's defaults."""
    directory = place.release(release.id)
    # Installed one after the other: the bundle's own wheel asks for what comes before it, Headrace too.
    paths = sorted(release.manifest.wheels, key=lambda path: (not path.startswith("wheels/headrace-"), path))
    wheels = [f"{directory}/{path}" for path in paths]
    requirements = f"{directory}/{REQUIREMENTS}"
    body = dict(written)
    tasks = (_task(task, wheels, requirements) for task in body["tasks"])
    body["tasks"] = sorted(tasks, key=lambda task: str(task["task_key"]))
    if "environments" in body:
        body["environments"] = [_serverless(one, wheels, requirements) for one in body["environments"]]
    body["name"] = str(body.get("name", key))
    body["tags"] = {**body.get("tags", {}), TAG: place.tag(key)}
    body |= {"format": "MULTI_TASK", "edit_mode": "UI_LOCKED", "max_concurrent_runs": 1}
    body["deployment"] = {"kind": "BUNDLE", "metadata_file_path": f"{place.root}/state.json"}
    body.setdefault("queue", {"enabled": True})
    for kind in TRIGGERS:
        if kind in body:
            body[kind] = {"pause_status": "PAUSED" if target.is_development else "UNPAUSED", **body[kind]}
    if target.is_development:
        body = paused(body)
        body["name"] = f"[dev {place.short_name}] {body['name']}"
        body["tags"]["dev"] = place.short_name
    if target.run_as:
        body["run_as"] = dict(target.run_as)
    return body


def _grant(one: Mapping[str, str]) -> dict[str, str]:
    """A permission in the words of the platform's interface."""
    given = {("permission_level" if key == "level" else key): value for key, value in one.items()}
    if given.get("permission_level") == "CAN_RUN":  # which a target may say of all that it has
        given["permission_level"] = "CAN_MANAGE_RUN"
    return given


def _task(task: Mapping[str, Any], wheels: list[str], requirements: str) -> Body:
    """The task with the release's wheels by their exact names, instead of whatever a pattern finds."""
    loop = task.get("for_each_task")
    if loop:
        return {**task, "for_each_task": {**loop, "task": _task(loop["task"], wheels, requirements)}}
    if "python_wheel_task" not in task or "environment_key" in task:
        return dict(task)
    others = [one for one in task.get("libraries", ()) if not _is_ours(one.get("whl") or one.get("requirements"))]
    return {**task, "libraries": [*others, {"requirements": requirements}, *({"whl": wheel} for wheel in wheels)]}


def _serverless(one: Mapping[str, Any], wheels: list[str], requirements: str) -> Body:
    spec = one.get("spec", {})
    others = [text for text in spec.get("dependencies", ()) if not (text.endswith(".whl") and _is_ours(text))]
    return {**one, "spec": {**spec, "dependencies": [*others, f"-r {requirements}", *wheels]}}


def _is_ours(path: str | None) -> bool:
    """Whether a library is a file of the tree, which a release holds; others lie elsewhere and stay."""
    return path is not None and not re.match(r"/|[\w+.-]+:/", path)


# ── What a job's runs read and write ──────────────────────────────────────────────────────────────────


def _values(job: Job, body: Body) -> list[tuple[str, dict[str, str]]]:
    """For each call of our entry points: the pipeline, and the values that are given to it."""
    found = []
    for call in find_task_calls(Job(job.key, body, job.locations, job.target)):
        pipeline = call.parameter("pipeline")
        if pipeline is not None:
            pairs = (given.value.partition("=") for given in call.all_parameters("value"))
            found.append((pipeline.value, {name: value for name, _, value in pairs}))
    return found


def _environment(release: Release, name: str, asked: tuple[str, dict[str, str]]) -> tuple[Environment, str]:
    pipeline, values = asked
    draft, problems = read_environment(release.directory, name, values, lenient=True)
    if draft.environment is None:
        raise ConfigurationError.of(problems)
    return draft.environment, pipeline


def _goes_on(environment: Environment) -> bool:
    """Whether some trigger of the environment does not end; which steps a pipeline has is not looked up for it."""
    return any(trigger not in ENDING for trigger in (environment.trigger, *environment.triggers.values()))
