"""Check the functions, schemas and rules that steps name, without importing user code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.config.environment_files import environment_names
from headrace.config.load import BundleDraft, read_bundle, sort_problems
from headrace.config.locations import KeyLocations
from headrace.config.models import Bundle, Rule, Step
from headrace.errors import ConfigurationError, Problem
from headrace.graph.function_signatures import find_mismatches, parameters_in_source
from headrace.graph.static_imports import Missing, Unchecked, find_definition


@dataclass(frozen=True)
class CheckResult:
    """The content of a bundle's files, and the problems of the files and of the functions that they name.

    `unchecked` has a text for each function whose parameters cannot be checked.
    """

    bundle: BundleDraft
    problems: tuple[Problem, ...]
    unchecked: tuple[str, ...]


def check_files(root: Path, environment: str | None = None, values: Mapping[str, str] | None = None) -> CheckResult:
    """Check a bundle's files and functions for one environment.

    If `environment` is None, check all environments. Their required values may then be missing.
    """
    names = [environment] if environment else environment_names(root)
    bundle = read_bundle(root, names, values, lenient=environment is None)
    results = list(check_functions(root, bundle.located_steps()))
    problems = sort_problems([*bundle.problems, *(result for result in results if isinstance(result, Problem))])
    return CheckResult(bundle, tuple(problems), tuple(result for result in results if isinstance(result, str)))


def require_functions(bundle: Bundle) -> None:
    """Raise ConfigurationError if functions or schemas are missing, or do not match the steps that name them.

    Accept functions whose parameters cannot be checked.
    """
    results = check_functions(Path(bundle.root), bundle.located_steps())
    if problems := [result for result in results if isinstance(result, Problem)]:
        raise ConfigurationError.of(problems)


def check_functions(root: Path, steps: Iterable[tuple[KeyLocations, Step]]) -> Iterator[Problem | str]:
    """Yield a Problem for each function or schema that is missing or does not match its step.

    Also yield a text for each function whose parameters cannot be checked.
    """
    source_directory = root / "src"
    for locations, step in steps:
        if step.transform is not None:
            yield from _check_transform(locations, step, source_directory)
        for path, import_path in _import_paths(step):
            definition = find_definition(import_path, source_directory)
            where = locations.where("steps", step.name, *path)
            key = path[-1]
            if isinstance(definition, Missing):
                yield Problem(where, f"step '{step.name}', {key}: {definition.message}", definition.fix)
            elif key == "rule":
                yield from _check_rule(where, step, import_path, definition)


def _check_rule(
    where: str, step: Step, import_path: str, definition: ast.FunctionDef | Unchecked
) -> Iterator[Problem | str]:
    if isinstance(definition, Unchecked):
        yield f"{where}: step '{step.name}': rule '{import_path}' is unchecked, because {definition.reason}"
    elif required := parameters_in_source(definition).required:
        message = f"rule '{import_path}' requires '{required[0]}', but a rule is called without arguments"
        yield Problem(where, f"step '{step.name}': {message}", "name the columns in the rule: F.col('…')")


def _check_transform(locations: KeyLocations, step: Step, source_directory: Path) -> Iterator[Problem | str]:
    where = locations.where("steps", step.name, "transform")
    definition = find_definition(str(step.transform), source_directory)
    if isinstance(definition, Missing):
        yield Problem(where, f"step '{step.name}', transform: {definition.message}", definition.fix)
    elif isinstance(definition, Unchecked):
        yield f"{where}: step '{step.name}': inputs and settings are unchecked, because {definition.reason}"
    else:
        for mismatch in find_mismatches(parameters_in_source(definition), step):
            mismatch_where = locations.where("steps", step.name, *mismatch.path)
            yield Problem(mismatch_where, f"step '{step.name}': {mismatch.message}", mismatch.fix)


def _import_paths(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the key path and the import path of each schema and rule of a step."""
    for name, read in step.reads.items():
        if read.schema_path is not None:
            yield ("reads", name, "schema"), read.schema_path
        yield from _rule_paths(read.expect, ("reads", name, "expect"))
    yield from _rule_paths(step.expect, ("expect",))


def _rule_paths(rules: tuple[Rule, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the key path and the import path of each rule in the list at a key path."""
    for index, rule in enumerate(rules):
        if rule.rule is not None:
            yield (*path, index, "rule"), rule.rule
