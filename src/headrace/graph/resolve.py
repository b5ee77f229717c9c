"""The steps of a bundle as a graph: their order, and the functions that they name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.environment_files import environment_names
from headrace.config.expectation_scope import QUARANTINE
from headrace.config.load import Reading, in_order, read_bundle
from headrace.config.locations import Lines, nearest
from headrace.config.models import Bundle, Pipeline, Rule, Step
from headrace.errors import ConfigurationError, Problem
from headrace.graph.function_signatures import mismatches, of_function, of_source
from headrace.graph.static_imports import Missing, Unchecked, find


def order(bundle: Bundle, pipeline: str) -> tuple[Step, ...]:
    """The steps of a pipeline, each after those whose tables it reads; otherwise as in the file."""
    steps, lines = pipeline_named(bundle, pipeline).steps.values(), bundle.lines_of(pipeline)
    return tuple(step for _, step in _in_order((lines, step) for step in steps))


def order_of_all(bundle: Bundle) -> list[tuple[Lines, Step]]:
    """The steps of all pipelines, each after those whose tables it reads, with the lines of its file."""
    return _in_order(bundle.located_steps())


def _in_order(located: Iterable[tuple[Lines, Step]]) -> list[tuple[Lines, Step]]:
    waiting, done = list(located), []
    while waiting:
        # Without a cycle, which loading has ruled out, there is always one whose inputs are done.
        to_come = {table for _, step in waiting for table in _written(step)}
        ready = next(one for one in waiting if not to_come & {*_read(one[1])} - {*_written(one[1])})
        done.append(ready)
        waiting.remove(ready)
    return done


def pipeline_named(bundle: Bundle, name: str) -> Pipeline:
    """The pipeline of that name, or the nearest one as the fix."""
    if name not in bundle.pipelines:
        raise ConfigurationError(f"there is no pipeline '{name}'", fix=nearest(name, bundle.pipelines))
    return bundle.pipelines[name]


def upstream(step: Step, among: Iterable[Step]) -> tuple[str, ...]:
    """The names of the other steps whose tables a step reads."""
    return tuple(other.name for other in among if other.name != step.name and set(_written(other)) & set(_read(step)))


def tables_read(bundle: Bundle) -> set[str]:
    """The names of all tables that some step of the bundle reads."""
    return {table for _, step in bundle.located_steps() for table in _read(step)}


def _written(step: Step) -> tuple[str, ...]:
    return tuple(name for table in step.tables_written for name in (table, f"{table}{QUARANTINE}"))


def _read(step: Step) -> tuple[str, ...]:
    return tuple(read.table for read in step.reads.values() if read.table is not None)


# ── Without importing ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Findings:
    """What the files alone show: what they say, what is wrong with them, what was not looked at."""

    reading: Reading
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def find_mistakes(root: Path, environment: str | None = None, values: Mapping[str, str] | None = None) -> Findings:
    """Every mistake of the bundle, for one environment or, without its required values, for all of them."""
    names = [environment] if environment else environment_names(root)
    reading = read_bundle(root, names, values, lenient=environment is None)
    said = list(examine(root, reading.located_steps()))
    problems = in_order([*reading.problems, *(one for one in said if isinstance(one, Problem))])
    return Findings(reading, tuple(problems), tuple(note for note in said if isinstance(note, str)))


def require_functions(bundle: Bundle) -> None:
    """Raises the functions and schemas that are not there, and the inputs and settings that do not fit them."""
    said = examine(Path(bundle.root), bundle.located_steps())
    if wrong := [one for one in said if isinstance(one, Problem)]:
        raise ConfigurationError.of(wrong)


def examine(root: Path, steps: Iterable[tuple[Lines, Step]]) -> Iterator[Problem | str]:
    """What is wrong with the functions that steps name, and as text what could not be checked."""
    source = root / "src"
    for lines, step in steps:
        if step.transform is not None:
            yield from _transform(lines, step, source)
        for path, named in _named(step):
            found = find(named, source)
            where = lines.where("steps", step.name, *path)
            if isinstance(found, Missing):
                yield Problem(where, f"step '{step.name}', {path[-1]}: {found.message}", found.fix)
            elif path[-1] != "rule":
                continue
            elif isinstance(found, Unchecked):
                yield f"{where}: step '{step.name}': rule '{named}' is unchecked, as {found.why}"
            elif wanted := of_source(found).required:
                message = f"step '{step.name}', rule: '{named}' wants '{wanted[0]}', but a rule takes nothing"
                yield Problem(where, message, "name the columns in the rule: F.col('…')")


def _transform(lines: Lines, step: Step, source: Path) -> Iterator[Problem | str]:
    where = lines.where("steps", step.name, "transform")
    found = find(str(step.transform), source)
    if isinstance(found, Missing):
        yield Problem(where, f"step '{step.name}', transform: {found.message}", found.fix)
    elif isinstance(found, Unchecked):
        yield f"{where}: step '{step.name}': inputs and settings are unchecked, as {found.why}"
    else:
        for wrong in mismatches(of_source(found), step):
            place = lines.where("steps", step.name, *wrong.path)
            yield Problem(place, f"step '{step.name}': {wrong.message}", wrong.fix)


def _named(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The schemas and rules that a step names by import path."""
    for name, read in step.reads.items():
        if read.schema_path is not None:
            yield ("reads", name, "schema"), read.schema_path
        yield from _rules(read.expect, ("reads", name, "expect"))
    yield from _rules(step.expect, ("expect",))


def _rules(rules: tuple[Rule, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for at, rule in enumerate(rules):
        if rule.rule is not None:
            yield (*path, at, "rule"), rule.rule


# ── With importing ────────────────────────────────────────────────────────────────────────────────────


def resolve(path: str) -> Any:
    """Imports what `module:name` names."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError as error:
        if error.obj is not sys.modules.get(module):
            raise _failed(module, error) from error
        fix = f"define it in {module}, or correct the import path"
        raise ConfigurationError(f"module '{module}' has no '{name}'", fix=fix) from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(module, error) from error
        fix = "correct the import path, or install the package"
        raise ConfigurationError(f"there is no module '{module}'", fix=fix) from error
    except Exception as error:  # a module of the user's may raise anything
        raise _failed(module, error) from error


def _failed(module: str, error: Exception) -> ConfigurationError:
    message = f"importing '{module}' failed: {type(error).__name__}: {error}"
    return ConfigurationError(message, fix=f"correct the module; try: python -c 'import {module}'")


def bind(step: Step, function: Callable[..., Any], inputs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call a step's transform with: its inputs by name, and the settings of `with`."""
    if not callable(function):
        fix = "name a function"
        raise ConfigurationError(f"step '{step.name}': {step.transform} is not a function", fix=fix)
    takes = of_function(function)
    wrong = list(mismatches(takes, step))
    if wrong:
        raise ConfigurationError.of(Problem("", f"step '{step.name}': {one.message}", one.fix) for one in wrong)
    left = dict(inputs)
    positional: list[Any] = []
    if takes.stream is not None:
        positional.append(left.pop(next(name for name in inputs if not step.reads[name].static)))
    return tuple(positional), {**left, **step.with_}
