"""A bundle's files -> one frozen value, or every problem of all files at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.config.bundle import Resources, read_resources
from headrace.config.checks.environments import check_environment
from headrace.config.checks.places import check_places
from headrace.config.checks.steps import check_steps
from headrace.config.checks.tables import check_tables
from headrace.config.checks.targets import check_targets
from headrace.config.environments import EnvironmentDraft, environment_names, read_environment
from headrace.config.locate import line_order, nearest
from headrace.config.models import Bundle, Pipeline
from headrace.config.pipelines import Draft, read_pipelines
from headrace.errors import ConfigurationError, Problem


def find_root(start: Path) -> Path:
    """The nearest directory, from here upwards, that holds conf/pipelines."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if (directory / "conf" / "pipelines").is_dir():
            return directory
    fix = "go into a bundle, or name one with --conf"
    raise ConfigurationError("there is no bundle here: no directory conf/pipelines", where=str(start), fix=fix)


def load_bundle(
    root: Path, environment: str = "local", values: Mapping[str, str] | None = None, *, lenient: bool = False
) -> Bundle:
    """Everything that the bundle says for one environment; lenient lets required values be missing."""
    (bundle,) = _load(root.resolve(), [environment], values or {}, lenient=lenient)
    return bundle


def load_all(root: Path, values: Mapping[str, str] | None = None) -> tuple[Bundle, ...]:
    """The bundle for each of its environments; required values may be missing."""
    names = environment_names(root)
    if not names:
        raise ConfigurationError("there is no environment", where="conf", fix="write one: conf/local.yml")
    return _load(root.resolve(), names, values or {}, lenient=True)


def _load(root: Path, names: list[str], given: Mapping[str, str], *, lenient: bool) -> tuple[Bundle, ...]:
    drafts, problems = read_pipelines(root)
    resources = read_resources(root)
    problems += resources.problems
    problems += [
        Problem(f"conf/{path.name}", "the file is not read", f"name it {path.stem}.yml")
        for path in sorted((root / "conf").glob("*.yaml"))
    ]
    environments = []
    declared: set[str] = set()
    for name in names:
        environment, found = read_environment(root, name, given, lenient=lenient)
        environments.append(environment)
        declared |= set(environment.values.declared)
        problems += found
    if lenient:
        problems += [_undeclared(name, declared) for name in given if name not in declared]
    problems += check_steps(drafts)
    problems += check_targets(resources, environments, environment_names(root))
    for environment in environments:
        problems += check_environment(environment, resources.targets)
        problems += check_tables(drafts, environment)
        problems += check_places(drafts, environment)
    if problems:
        raise ConfigurationError.of(in_order(problems))
    return tuple(_bundle(root, resources, drafts, environment) for environment in environments)


def _undeclared(name: str, declared: set[str]) -> Problem:
    fix = nearest(name, declared, "leave it out, or declare it under values")
    return Problem("conf", f"the value '{name}' is given, but no environment declares it", fix)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by file and line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (line_order(problem.where), problem.message))


def _bundle(root: Path, resources: Resources, drafts: list[Draft], environment: EnvironmentDraft) -> Bundle:
    assert environment.environment is not None  # no problems: it is well formed
    return Bundle(
        root=str(root),
        name=resources.name,
        pipelines={draft.name: Pipeline(name=draft.name, steps=draft.steps) for draft in drafts},
        environment=environment.environment,
        targets=resources.targets,
        jobs=tuple(resources.jobs),
        lines={lines.file: lines for lines in (environment.lines, *(draft.lines for draft in drafts))},
    )
