"""What the tasks of a job call: an entry point that the wheel has, with names that the bundle has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.task_calls import WHEEL, Call, calls_of
from headrace.config.databricks.wheel_metadata import LAYER_OF, PARAMETERS, REQUIRED, entry_points_of
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import KeyPath, closest_match
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

PERSON = "${workspace.current_user."


def check_entry_points(job: Job, root: Path) -> Iterator[Problem]:
    """The entry points that the wheels do not have."""
    for at, task in job.work:
        wheel = task.get(WHEEL)
        if not isinstance(wheel, dict):
            continue
        package, name = wheel.get("package_name"), wheel.get("entry_point")
        if any(not isinstance(one, str) or isinstance(one, Unresolved) for one in (package, name)):
            continue
        known = entry_points_of(str(package), root)
        if known is not None and name not in known:
            message = f"calls '{name}', which is no entry point of the package {package}"
            fix = closest_match(str(name), known, "add it to pyproject.toml: [project.scripts]" if not known else "")
            yield job.problem((*at, WHEEL, "entry_point"), message, fix)


def check_calls(
    job: Job,
    target: Target,
    drafts: Mapping[str, Draft],
    environment: EnvironmentDraft | None,
    known: Collection[str],
) -> Iterator[Problem]:
    """The parameters of our entry points that name what is not there, or leave out what must be given."""
    for call in calls_of(job):
        wheel = call.task[WHEEL]
        if wheel.get("named_parameters") and wheel.get("parameters"):
            at = (*call.at, WHEEL, "parameters")
            yield call.job.problem(at, "has parameters and named_parameters", "keep one of them")
        for given in call.given:
            if given.name not in PARAMETERS:
                message = f"gives the unknown parameter '{given.name}'"
                yield call.job.problem(given.at, message, closest_match(given.name, PARAMETERS))
        for name in REQUIRED:
            if call.one(name) is None:
                value = "${bundle.target}" if name == "env" else "…"
                fix = f'add {name}: "{value}" to named_parameters'
                yield call.job.problem((*call.at, WHEEL), f"does not give the parameter '{name}'", fix)
        yield from _environment(call, target, known)
        yield from _steps(call, drafts)
        yield from _values(call, target, environment)


def _environment(call: Call, target: Target, known: Collection[str]) -> Iterator[Problem]:
    given = call.one("env")
    if given is None or not given.is_fixed:
        return
    if given.value not in (*known, target.name):
        message = f"runs the unknown environment '{given.value}'"
        yield call.job.problem(given.at, message, closest_match(given.value, known))
    elif given.value != target.name:
        message = f"runs environment '{given.value}', which is not the target's"
        yield call.job.problem(given.at, message, 'write env: "${bundle.target}"')


def _steps(call: Call, drafts: Mapping[str, Draft]) -> Iterator[Problem]:
    given = call.one("pipeline")
    if given is None or not given.is_fixed:
        return
    if given.value not in drafts:
        yield call.job.problem(
            given.at, f"runs the unknown pipeline '{given.value}'", closest_match(given.value, drafts)
        )
        return
    draft = drafts[given.value]
    if draft.is_incomplete:
        return
    asked = call.every("step")
    for one in asked:
        if one.is_fixed and one.value not in draft.names:
            message = f"runs the unknown step '{one.value}' of pipeline '{draft.name}'"
            yield call.job.problem(one.at, message, closest_match(one.value, draft.names))
    layer = LAYER_OF.get(call.entry_point)
    layers = {step.layer for step in draft.steps.values()}
    if not asked and layer and layer not in layers and len(draft.steps) == len(draft.names):
        at = (*call.at, WHEEL, "entry_point")
        fix = f"call run, or {' or '.join(sorted(layers))}" if layers else "call run"
        yield call.job.problem(at, f"runs the {layer} steps of pipeline '{draft.name}', which has none", fix)


def _values(call: Call, target: Target, environment: EnvironmentDraft | None) -> Iterator[Problem]:
    if environment is None or not environment.raw:
        return
    required = environment.values.required()
    named: set[str] = set()
    for given in call.every("value"):
        name, separator, value = given.value.partition("=")
        if isinstance(given.value, Unresolved):
            named.update(required)
            continue
        named.add(name)
        if not separator:
            yield call.job.problem(given.at, f"gives the value '{name}' without saying it", f'write "{name}=…"')
        elif name not in environment.values.declared:
            message = f"gives the value '{name}', which {environment.locations.file} does not declare"
            fix = closest_match(
                name, environment.values.declared, f"declare it there: values: {{{name}: …}}, or take it out"
            )
            yield call.job.problem(given.at, message, fix)
        elif target.is_development and name in required and PERSON not in value:
            message = f"gives everybody the same value '{name}' in a target for development"
            yield call.job.problem(given.at, message, f'write "{name}={PERSON}short_name}}"')
    for name in required:
        if name not in named:
            message = f"does not give the value '{name}', which {environment.locations.file} requires"
            fix = f'add value: "{name}={PERSON}short_name}}" to named_parameters'
            yield call.job.problem(_values_at(call), message, fix)


def _values_at(call: Call) -> KeyPath:
    return (*call.at, WHEEL, "parameters" if call.task[WHEEL].get("parameters") else "named_parameters")
