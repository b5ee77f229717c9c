"""Find secrets in plain text: in jobs, in variables, and in the options of environments and steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import KeyLocations, KeyPath, describe_path
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem

# Keys that contain one of these words are secret, unless they match NOT_SECRET_KEY.
SECRET_KEY = re.compile(
    r"password|passwd|secret|token|credential|jaas|(?:account|access|api|private)[._-]?key", re.IGNORECASE
)
# Keys that end with one of these words are not secret: `token.endpoint.url`, `secret_scope`.
NOT_SECRET_KEY = re.compile(
    r"(?:class|enabled|endpoint|file|id|location|ms|name|path|provider|scope|seconds|size|timeout|type|ur[il])\Z",
    re.IGNORECASE,
)
# A reference to a secret scope, or a reference that Headrace replaces.
REFERENCE = re.compile(r"\{\{\s*secrets/[^/}]+/[^/}]+\s*\}\}|\$\{[^}]+\}")
# A command-line argument name=…, --name=… or --value=name=…; the groups are the name and the value.
ARGUMENT = re.compile(r"(?:--?[\w.-]+=)?-*([\w.-]+)=(.+)\Z", re.DOTALL)
JOB_FIX = "store it in a secret scope and write '{{secrets/scope/key}}'"
OPTION_FIX = "store it in a secret scope; a source refers to it with security: {password: {secret: scope/key}}"


def check_job_secrets(job: Job) -> Iterator[Problem]:
    """Yield the keys and parameters of a job whose values are secrets in plain text."""
    for path, key in _plain_secrets(job.body, ()):
        yield job.problem(path, f"has a secret in plain text: '{key}'", JOB_FIX)


def check_variable_secrets(targets: Mapping[str, Target], locations: KeyLocations) -> Iterator[Problem]:
    """Yield the variables of databricks.yml whose values are secrets in plain text."""
    for name, target in targets.items():
        for variable, value in target.variables.items():
            if _is_plain_secret(variable, value):
                path: KeyPath = ("targets", name, "variables", variable)
                where = locations.where(*(path if path in locations.lines else ("variables", variable)))
                yield Problem(where, f"variable '{variable}' is a secret in plain text", JOB_FIX)


def check_environment_secrets(environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield the options and settings of an environment whose values are secrets in plain text."""
    sections: list[KeyPath] = [("settings",)]
    for kind in ("sources", "topics"):
        sections += [(kind, name, "options") for name in environment.names(kind)]
    for section in sections:
        for path, key in _plain_secrets(_value_at(environment.raw, section), section):
            message = f"{describe_path(path[:-1])}: '{key}' is a secret in plain text"
            yield Problem(environment.locations.where(*path), message, OPTION_FIX)


def check_step_secrets(draft: PipelineDraft) -> Iterator[Problem]:
    """Yield the options and settings of a pipeline's steps whose values are secrets in plain text."""
    for name, step in draft.steps.items():
        sections: list[tuple[KeyPath, Mapping[str, Any]]] = [(("settings",), step.settings)]
        sections += [(("reads", input_name, "options"), read.options) for input_name, read in step.reads.items()]
        sections += [(("writes", index, "options"), sink.options) for index, sink in enumerate(step.writes)]
        for section, options in sections:
            for path, key in _plain_secrets(options, ("steps", name, *section)):
                message = f"{describe_path(path[:-1])}: '{key}' is a secret in plain text"
                yield Problem(draft.locations.where(*path), message, OPTION_FIX)


def _plain_secrets(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the key path and the name of each secret in plain text inside the value at a key path.

    The name is a key, or the name of a job parameter or of a command-line argument.
    """
    if isinstance(value, Mapping):
        parameter = value.get("name")  # a job parameter has the form {name: password, default: …}
        if isinstance(parameter, str) and _is_plain_secret(parameter, value.get("default")):
            yield (*path, "default"), parameter
        for key, inner in value.items():
            if _is_plain_secret(key, inner):
                yield (*path, key), key
            else:
                yield from _plain_secrets(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _plain_secrets(inner, (*path, index))
    elif isinstance(value, str) and (argument := ARGUMENT.match(value)):
        argument_name, argument_value = argument.groups()
        if _is_plain_secret(argument_name, argument_value):
            yield path, argument_name


def _is_plain_secret(key: str, value: Any) -> bool:
    """Return whether the name of a key indicates a secret, and the value is text that contains no reference."""
    if not isinstance(value, str) or not value or value.lower() in ("true", "false") or REFERENCE.search(value):
        return False
    return SECRET_KEY.search(key) is not None and NOT_SECRET_KEY.search(key) is None


def _value_at(data: Any, path: KeyPath) -> Any:
    """Return the value at a key path; None if the data has no such key."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
