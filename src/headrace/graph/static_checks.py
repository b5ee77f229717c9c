"""Check the functions, schemas and rules that steps name, without importing user code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.config.environment_files import environment_names
from headrace.config.load import BundleDraft, read_bundle, sort_problems
from headrace.config.locations import KeyLocations
from headrace.config.models import Bundle, Rule, Step
from headrace.errors import ConfigurationError, Problem
from headrace.graph.function_signatures import mismatches, parameters_in_source
from headrace.graph.static_imports import Missing, Unchecked, find_definition


@dataclass(frozen=True)
class CheckResult:
    """What the files alone show: what they say, what is wrong with them, what was not looked at."""

    reading: BundleDraft
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def check_files(root: Path, environment: str | None = None, values: Mapping[str, str] | None = None) -> CheckResult:
    """Every mistake of the bundle, for one environment or, without its required values, for all of them."""
    names = [environment] if environment else environment_names(root)
    reading = read_bundle(root, names, values, lenient=environment is None)
    said = list(check_functions(root, reading.located_steps()))
    problems = sort_problems([*reading.problems, *(one for one in said if isinstance(one, Problem))])
    return CheckResult(reading, tuple(problems), tuple(note for note in said if isinstance(note, str)))


def require_functions(bundle: Bundle) -> None:
    """Raises the functions and schemas that are not there, and the inputs and settings that do not fit them."""
    said = check_functions(Path(bundle.root), bundle.located_steps())
    if wrong := [one for one in said if isinstance(one, Problem)]:
        raise ConfigurationError.of(wrong)


def check_functions(root: Path, steps: Iterable[tuple[KeyLocations, Step]]) -> Iterator[Problem | str]:
    """What is wrong with the functions that steps name, and as text what could not be checked."""
    source = root / "src"
    for lines, step in steps:
        if step.transform is not None:
            yield from _check_transform(lines, step, source)
        for path, named in _import_paths(step):
            found = find_definition(named, source)
            where = lines.where("steps", step.name, *path)
            if isinstance(found, Missing):
                yield Problem(where, f"step '{step.name}', {path[-1]}: {found.message}", found.fix)
            elif path[-1] != "rule":
                continue
            elif isinstance(found, Unchecked):
                yield f"{where}: step '{step.name}': rule '{named}' is unchecked, as {found.why}"
            elif wanted := parameters_in_source(found).required:
                message = f"step '{step.name}', rule: '{named}' wants '{wanted[0]}', but a rule takes nothing"
                yield Problem(where, message, "name the columns in the rule: F.col('…')")


def _check_transform(lines: KeyLocations, step: Step, source: Path) -> Iterator[Problem | str]:
    where = lines.where("steps", step.name, "transform")
    found = find_definition(str(step.transform), source)
    if isinstance(found, Missing):
        yield Problem(where, f"step '{step.name}', transform: {found.message}", found.fix)
    elif isinstance(found, Unchecked):
        yield f"{where}: step '{step.name}': inputs and settings are unchecked, as {found.why}"
    else:
        for wrong in mismatches(parameters_in_source(found), step):
            place = lines.where("steps", step.name, *wrong.path)
            yield Problem(place, f"step '{step.name}': {wrong.message}", wrong.fix)


def _import_paths(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The schemas and rules that a step names by import path."""
    for name, read in step.reads.items():
        if read.schema_path is not None:
            yield ("reads", name, "schema"), read.schema_path
        yield from _rule_paths(read.expect, ("reads", name, "expect"))
    yield from _rule_paths(step.expect, ("expect",))


def _rule_paths(rules: tuple[Rule, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for at, rule in enumerate(rules):
        if rule.rule is not None:
            yield (*path, at, "rule"), rule.rule
