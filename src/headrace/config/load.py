"""A bundle's files -> one frozen value, or every problem of all files at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.config.checks.deployment_checks import Jobs, check_deployment
from headrace.config.checks.environment_checks import check_environment
from headrace.config.checks.isolation_checks import check_root_paths, check_sharing
from headrace.config.checks.location_checks import check_places
from headrace.config.checks.secret_checks import check_environment_secrets, check_step_secrets, check_variable_secrets
from headrace.config.checks.step_checks import check_steps
from headrace.config.checks.table_checks import check_tables
from headrace.config.checks.target_checks import check_targets
from headrace.config.databricks.databricks_yml import Resources, read_resources
from headrace.config.environment_files import EnvironmentDraft, environment_names, read_environment
from headrace.config.locations import KeyLocations, closest_match, line_order
from headrace.config.models import Bundle, Pipeline, Step
from headrace.config.pipeline_files import Draft, read_pipelines
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
    (bundle,) = read_bundle(root, [environment], values, lenient=lenient).bundles()
    return bundle


def load_all(root: Path, values: Mapping[str, str] | None = None) -> tuple[Bundle, ...]:
    """The bundle for each of its environments; required values may be missing."""
    return read_bundle(root, environment_names(root), values, lenient=True).bundles()


@dataclass(frozen=True)
class BundleDraft:
    """What the files say, right or wrong."""

    root: Path
    resources: Resources
    drafts: list[Draft]
    environments: list[EnvironmentDraft]
    jobs: Jobs
    problems: list[Problem]

    def located_steps(self) -> Iterator[tuple[KeyLocations, Step]]:
        """The steps that are well formed, each with the lines of its file."""
        return ((draft.locations, step) for draft in self.drafts for step in draft.steps.values())

    def bundles(self) -> tuple[Bundle, ...]:
        """The bundle for each environment that was read, if nothing is wrong."""
        if self.problems:
            raise ConfigurationError.of(sort_problems(self.problems))
        pipelines = {draft.name: Pipeline(name=draft.name, steps=draft.steps) for draft in self.drafts}
        return tuple(
            Bundle(
                root=str(self.root),
                name=self.resources.name,
                pipelines=pipelines,
                environment=draft.environment,
                targets=self.resources.targets,
                jobs=self.jobs,
                locations={
                    locations.file: locations
                    for locations in (draft.locations, *(one.locations for one in self.drafts))
                },
            )
            for draft in self.environments
            if draft.environment is not None
        )


def read_bundle(
    root: Path, names: list[str], given: Mapping[str, str] | None = None, *, lenient: bool = False
) -> BundleDraft:
    """Read the files for some environments, and gather all that is wrong with them."""
    root = root.resolve()
    given = given or {}
    drafts, problems = read_pipelines(root)
    resources = read_resources(root)
    problems += resources.problems + _not_read(root)
    if not names:
        problems.append(Problem("conf", "there is no environment", "write one: conf/local.yml"))
    environments = []
    for name in names:
        environment, found = read_environment(root, name, given, lenient=lenient)
        environments.append(environment)
        problems += found
    if lenient:
        declared = {name for environment in environments for name in environment.values.declared}
        problems += [_undeclared(name, declared) for name in given if name not in declared]
    problems += check_steps(drafts)
    known = environment_names(root)
    problems += check_targets(resources, environments, known)
    problems += check_root_paths(resources.targets, resources.lines)
    problems += check_variable_secrets(resources.targets, resources.lines)
    problems += check_sharing(environments, resources.targets)
    for draft in drafts:
        problems += check_step_secrets(draft)
    for environment in environments:
        problems += check_environment_secrets(environment)
        problems += check_environment(environment, resources.targets)
        problems += check_tables(drafts, environment)
        problems += check_places(drafts, environment)
    # A target without an environment is read with any of the others.
    targets = [name for name in resources.targets if name in names or name not in known]
    jobs, found = check_deployment(root, resources, targets, drafts, environments, known)
    return BundleDraft(root, resources, drafts, environments, jobs, problems + found)


def _not_read(root: Path) -> list[Problem]:
    files = sorted((root / "conf").glob("[!.]*.yaml"))
    return [Problem(f"conf/{file.name}", "the file is not read", f"name it {file.stem}.yml") for file in files]


def _undeclared(name: str, declared: set[str]) -> Problem:
    fix = closest_match(name, declared, "leave it out, or declare it under values")
    return Problem("conf", f"the value '{name}' is given, but no environment declares it", fix)


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by file and line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (line_order(problem.where), problem.message))
