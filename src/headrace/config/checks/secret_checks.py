"""Secrets that are written out: in jobs, and among the options of environments and steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import KeyLocations, KeyPath, describe_path
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

SECRET = re.compile(
    r"password|passwd|secret|token|credential|jaas|(?:account|access|api|private)[._-]?key", re.IGNORECASE
)
# What follows may be told: `token.endpoint.url` and `secret_scope` are no secrets.
TOLD = re.compile(
    r"(?:class|enabled|endpoint|file|id|location|ms|name|path|provider|scope|seconds|size|timeout|type|ur[il])\Z",
    re.IGNORECASE,
)
REFERENCE = re.compile(r"\{\{\s*secrets/[^/}]+/[^/}]+\s*\}\}|\$\{[^}]+\}")
OPTION = re.compile(r"(?:--?[\w.-]+=)?-*([\w.-]+)=(.+)\Z", re.DOTALL)  # also --value=name=…
IN_JOBS = "put it into a secret scope and write '{{secrets/scope/key}}'"
IN_CONF = "put it into a secret scope; a source names it with security: {password: {secret: scope/key}}"


def check_job_secrets(job: Job) -> Iterator[Problem]:
    """The keys of a job that hold a secret as plain text."""
    for at, key in _written_out(job.body, ()):
        yield job.problem(at, f"has a secret written out at '{key}'", IN_JOBS)


def check_variable_secrets(targets: Mapping[str, Target], lines: KeyLocations) -> Iterator[Problem]:
    """The variables of databricks.yml whose value is a secret as plain text."""
    for name, target in targets.items():
        for variable, value in target.variables.items():
            if _is_secret(variable, value):
                at: KeyPath = ("targets", name, "variables", variable)
                where = lines.where(*(at if at in lines.lines else ("variables", variable)))
                yield Problem(where, f"variable '{variable}' is a secret that is written out", IN_JOBS)


def check_environment_secrets(environment: EnvironmentDraft) -> Iterator[Problem]:
    """The options and settings of an environment that hold a secret as plain text."""
    places: list[KeyPath] = [("settings",)]
    for kind in ("sources", "topics"):
        places += [(kind, name, "options") for name in environment.names(kind)]
    for at in places:
        for path, key in _written_out(_under(environment.raw, at), at):
            message = f"{describe_path(path[:-1])}: a secret is written out at '{key}'"
            yield Problem(environment.locations.where(*path), message, IN_CONF)


def check_step_secrets(draft: Draft) -> Iterator[Problem]:
    """The options and settings of a pipeline's steps that hold a secret as plain text."""
    for name, step in draft.steps.items():
        options: list[tuple[KeyPath, Mapping[str, Any]]] = [(("settings",), step.settings)]
        options += [(("reads", read, "options"), found.options) for read, found in step.reads.items()]
        options += [(("writes", number, "options"), sink.options) for number, sink in enumerate(step.writes)]
        for at, found in options:
            for path, key in _written_out(found, ("steps", name, *at)):
                message = f"{describe_path(path[:-1])}: a secret is written out at '{key}'"
                yield Problem(draft.locations.where(*path), message, IN_CONF)


def _written_out(value: Any, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, Mapping):
        named = value.get("name")  # a parameter of the job: {name: password, default: …}
        if isinstance(named, str) and _is_secret(named, value.get("default")):
            yield (*at, "default"), named
        for key, inner in value.items():
            if _is_secret(key, inner):
                yield (*at, key), key
            else:
                yield from _written_out(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _written_out(inner, (*at, number))
    elif isinstance(value, str) and (option := OPTION.match(value)) and _is_secret(option[1], option[2]):
        yield at, option[1]


def _is_secret(key: str, value: Any) -> bool:
    if not isinstance(value, str) or not value or value.lower() in ("true", "false") or REFERENCE.search(value):
        return False
    return SECRET.search(key) is not None and TOLD.search(key) is None


def _under(data: Any, path: KeyPath) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
