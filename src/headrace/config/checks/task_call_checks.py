"""Check the calls that the tasks of a job make: the entry points exist, and the parameters match the bundle."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.databricks.job_grammar import intended_keys
from headrace.config.databricks.references import USER_REFERENCE, USER_REFERENCE_START, Unresolved
from headrace.config.databricks.task_calls import WHEEL_TASK, TaskCall, find_task_calls
from headrace.config.databricks.wheel_metadata import (
    ENTRY_POINT_LAYERS,
    PARAMETERS,
    REQUIRED_PARAMETERS,
    entry_points_of,
)
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import fix_for_unknown_name
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem


def check_entry_points(job: Job, root: Path) -> Iterator[Problem]:
    """Yield the tasks that call an entry point that the task's package does not have, if its entry points are known.

    `root` is the bundle's directory.
    """
    for path, task in job.runnable_tasks:
        wheel_task = task.get(WHEEL_TASK)
        if not isinstance(wheel_task, dict):
            continue
        package, name = wheel_task.get("package_name"), wheel_task.get("entry_point")
        are_resolved = all(isinstance(text, str) and not isinstance(text, Unresolved) for text in (package, name))
        if not are_resolved:
            continue
        entry_points = entry_points_of(str(package), root)
        if entry_points is not None and name not in entry_points:
            message = f"calls the unknown entry point '{name}' of package {package}"
            fix_if_none_defined = "" if entry_points else "add it to pyproject.toml: [project.scripts]"
            fix = fix_for_unknown_name(str(name), entry_points, fix_if_none_defined)
            yield job.problem((*path, WHEEL_TASK, "entry_point"), message, fix)


def check_calls(
    job: Job,
    target: Target,
    drafts: Mapping[str, PipelineDraft],
    environment: EnvironmentDraft | None,
    known_environments: Collection[str],
) -> Iterator[Problem]:
    """Yield the unknown, missing and invalid parameters in calls of Headrace's entry points.

    `drafts` are the pipeline files, valid or not, by pipeline name. `environment` is the target's environment. If it is
    None, because it was not loaded, the `value` parameters (NAME=VALUE) are not checked. `known_environments` are the
    names of all environments.
    """
    for call in find_task_calls(job):
        wheel_task = call.task[WHEEL_TASK]
        if wheel_task.get("named_parameters") and wheel_task.get("parameters"):
            path = (*call.path, WHEEL_TASK, "parameters")
            yield job.problem(path, "has both parameters and named_parameters", "keep one of them")
        for parameter in call.parameters:
            if parameter.name not in PARAMETERS:
                message = f"passes the unknown parameter '{parameter.name}'"
                yield job.problem(parameter.path, message, fix_for_unknown_name(parameter.name, PARAMETERS))
        intended = intended_keys((parameter.name for parameter in call.parameters), PARAMETERS)
        for name in REQUIRED_PARAMETERS:
            if name not in intended:
                fix = _fix_by_adding(call, name, "${bundle.target}" if name == "env" else "…")
                yield job.problem((*call.path, WHEEL_TASK), f"does not pass the parameter '{name}'", fix)
        yield from _check_environment(call, target, known_environments)
        yield from _check_steps(call, drafts)
        yield from _check_values(call, target, environment)


def _check_environment(call: TaskCall, target: Target, known_environments: Collection[str]) -> Iterator[Problem]:
    """Yield a problem if the call passes an environment other than the target's."""
    parameter = call.parameter("env")
    if parameter is None or not parameter.is_static:
        return
    if parameter.value not in (*known_environments, target.name):
        message = f"runs the unknown environment '{parameter.value}'"
        yield call.job.problem(parameter.path, message, fix_for_unknown_name(parameter.value, known_environments))
    elif parameter.value != target.name:
        message = f"runs environment '{parameter.value}' instead of the target's environment"
        yield call.job.problem(parameter.path, message, 'write env: "${bundle.target}"')


def _check_steps(call: TaskCall, drafts: Mapping[str, PipelineDraft]) -> Iterator[Problem]:
    """Yield a problem for an unknown pipeline, for each unknown step, and for an entry point that would run no step."""
    pipeline = call.parameter("pipeline")
    if pipeline is None or not pipeline.is_static:
        return
    if pipeline.value not in drafts:
        message = f"runs the unknown pipeline '{pipeline.value}'"
        yield call.job.problem(pipeline.path, message, fix_for_unknown_name(pipeline.value, drafts))
        return
    draft = drafts[pipeline.value]
    if draft.is_incomplete:
        return
    selected = call.all_parameters("step")
    for step in selected:
        if step.is_static and step.value not in draft.step_names:
            message = f"runs the unknown step '{step.value}' of pipeline '{draft.name}'"
            yield call.job.problem(step.path, message, fix_for_unknown_name(step.value, draft.step_names))
    layer = ENTRY_POINT_LAYERS.get(call.entry_point)
    layers = {step.layer for step in draft.steps.values()}
    are_all_steps_valid = len(draft.steps) == len(draft.step_names)
    if not selected and layer and layer not in layers and are_all_steps_valid:
        path = (*call.path, WHEEL_TASK, "entry_point")
        fix = f"call run, or {' or '.join(sorted(layers))}" if layers else "call run"
        yield call.job.problem(path, f"runs the {layer} steps of pipeline '{draft.name}', which has none", fix)


def _check_values(call: TaskCall, target: Target, environment: EnvironmentDraft | None) -> Iterator[Problem]:
    """Yield the problems of the call's `value` parameters (NAME=VALUE), and the required values that are missing."""
    if environment is None or not environment.raw:  # not loaded, or not readable
        return
    declared, required = environment.values.declared, environment.values.required()
    passed: set[str] = set()
    for parameter in call.all_parameters("value"):
        name, separator, value = parameter.value.partition("=")
        if isinstance(parameter.value, Unresolved):  # this parameter may pass any of the required values
            passed.update(required)
            continue
        passed.add(name)
        if not separator:
            message = f"passes '{name}' as a value, but not in the form name=value"
            yield call.job.problem(parameter.path, message, f'write "{name}=…"')
        elif name not in declared:
            message = f"passes the value '{name}', which {environment.locations.file} does not declare"
            fix = f"declare it in {environment.locations.file}: values: {{{name}: …}}, or remove it"
            yield call.job.problem(parameter.path, message, fix_for_unknown_name(name, declared, fix))
        elif target.is_development and name in required and USER_REFERENCE_START not in value:
            message = f"passes a value for '{name}' that is the same for all users of a development target"
            yield call.job.problem(parameter.path, message, f'write "{name}={USER_REFERENCE}"')
    for name in required:
        if name not in intended_keys(passed, declared):
            message = f"does not pass the value '{name}', which {environment.locations.file} requires"
            path = (*call.path, WHEEL_TASK, _parameters_key(call))
            yield call.job.problem(path, message, _fix_by_adding(call, "value", f"{name}={USER_REFERENCE}"))


def _parameters_key(call: TaskCall) -> str:
    """Return the key to which a missing parameter has to be added: the one that the task uses already."""
    return "parameters" if call.task[WHEEL_TASK].get("parameters") else "named_parameters"


def _fix_by_adding(call: TaskCall, name: str, value: str) -> str:
    """Return the fix for a missing parameter, in the form that the key for the call's parameters requires."""
    key = _parameters_key(call)
    return f'add "--{name}={value}" to {key}' if key == "parameters" else f'add {name}: "{value}" to {key}'
