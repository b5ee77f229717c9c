"""Load a bundle's files as one frozen value, or raise the problems of all files together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.config.checks.deployment_checks import Jobs, check_deployment
from headrace.config.checks.environment_checks import check_environment
from headrace.config.checks.isolation_checks import check_root_paths, check_sharing
from headrace.config.checks.location_checks import check_steps_in_environment
from headrace.config.checks.secret_checks import check_environment_secrets, check_step_secrets, check_variable_secrets
from headrace.config.checks.step_checks import check_steps
from headrace.config.checks.table_checks import check_tables
from headrace.config.checks.target_checks import check_targets
from headrace.config.databricks.databricks_yml import Resources, read_resources
from headrace.config.document import wrong_suffix
from headrace.config.environment_files import EnvironmentDraft, environment_names, read_environment
from headrace.config.locations import KeyLocations, fix_for_unknown_name, line_order
from headrace.config.models import Bundle, Pipeline, Step
from headrace.config.pipeline_files import PipelineDraft, read_pipelines
from headrace.errors import ConfigurationError, Problem


def find_root(start: Path) -> Path:
    """Return the nearest directory, `start` or one of its parents, that contains conf/pipelines."""
    start = start.resolve()
    for directory in (start, *start.parents):
        if (directory / "conf" / "pipelines").is_dir():
            return directory
    fix = "change to a bundle's directory, or name one with --conf"
    raise ConfigurationError("there is no bundle here: no directory conf/pipelines", where=str(start), fix=fix)


def load_bundle(
    root: Path, environment: str = "local", values: Mapping[str, str] | None = None, *, lenient: bool = False
) -> Bundle:
    """Return the bundle for one environment. Raise ConfigurationError if any file that was read has a problem.

    `values` are those given with --value. If `lenient`, required values may be missing.
    """
    (bundle,) = read_bundle(root, [environment], values, lenient=lenient).bundles()
    return bundle


def load_all(root: Path, values: Mapping[str, str] | None = None) -> tuple[Bundle, ...]:
    """Return one Bundle for each environment. Raise ConfigurationError if any file has a problem.

    `values` are those given with --value. Required values may be missing.
    """
    return read_bundle(root, environment_names(root), values, lenient=True).bundles()


@dataclass(frozen=True)
class BundleDraft:
    """The content of a bundle's files, valid or not, and the problems of all of them."""

    root: Path
    resources: Resources
    pipelines: list[PipelineDraft]
    environments: list[EnvironmentDraft]
    jobs: Jobs
    problems: list[Problem]

    def located_steps(self) -> Iterator[tuple[KeyLocations, Step]]:
        """Yield the valid steps, each with the locations of the keys in its file."""
        return ((draft.locations, step) for draft in self.pipelines for step in draft.steps.values())

    def bundles(self) -> tuple[Bundle, ...]:
        """Return one Bundle for each environment that was read. Raise ConfigurationError if there are problems."""
        if self.problems:
            raise ConfigurationError.of(sort_problems(self.problems))
        pipelines = {draft.name: Pipeline(name=draft.name, steps=draft.steps) for draft in self.pipelines}
        pipeline_locations = [draft.locations for draft in self.pipelines]
        return tuple(
            Bundle(
                root=str(self.root),
                name=self.resources.name,
                pipelines=pipelines,
                environment=environment_draft.environment,
                targets=self.resources.targets,
                jobs=self.jobs,
                locations={
                    locations.file: locations for locations in (environment_draft.locations, *pipeline_locations)
                },
            )
            for environment_draft in self.environments
            if environment_draft.environment is not None
        )


def read_bundle(
    root: Path, names: list[str], given: Mapping[str, str] | None = None, *, lenient: bool = False
) -> BundleDraft:
    """Return the content of a bundle's files, with only the environments in `names`, and the problems of these files.

    `given` are the values given with --value. If `lenient`, required values may be missing, and a given value must be
    declared by at least one of these environments, not by each.
    """
    root = root.resolve()
    given = given or {}
    drafts, problems = read_pipelines(root)
    resources = read_resources(root)
    ignored_files = sorted((root / "conf").glob("[!.]*.yaml"))
    problems += resources.problems + [wrong_suffix(f"conf/{file.name}") for file in ignored_files]
    if not names and not ignored_files:
        problems.append(Problem("conf", "the bundle has no environment", "write one: conf/local.yml"))
    environments = []
    for name in names:
        environment, environment_problems = read_environment(root, name, given, lenient=lenient)
        environments.append(environment)
        problems += environment_problems
    # A file that could not be read may declare any value.
    were_all_read = not ignored_files and all(environment.raw for environment in environments)
    if lenient and environments and were_all_read:
        declared = {name for environment in environments for name in environment.values.declared}
        problems += [_undeclared_value(name, declared) for name in given if name not in declared]
    problems += check_steps(drafts)
    existing_environments = environment_names(root)
    # If a target's environment is in a .yaml file, only the file's name is a problem: the environment counts as known.
    ignored_environments = [file.stem for file in ignored_files if file.stem in resources.targets]
    known_environments = [*existing_environments, *ignored_environments]
    problems += check_targets(resources, environments, known_environments)
    problems += check_root_paths(resources.targets, resources.locations)
    problems += check_variable_secrets(resources.targets, resources.locations)
    for draft in drafts:
        problems += check_step_secrets(draft)
    for environment in environments:
        problems += check_environment_secrets(environment)
        problems += check_environment(environment, resources.targets)
        problems += check_tables(drafts, environment)
        problems += check_steps_in_environment(drafts, environment)
    # Check the targets of the selected environments, and all targets without an environment.
    targets = [name for name in resources.targets if name in names or name not in existing_environments]
    jobs, job_problems = check_deployment(root, resources, targets, drafts, environments, known_environments)
    problems += [*job_problems, *check_sharing(root, environments, jobs)]
    return BundleDraft(root, resources, drafts, environments, jobs, problems)


def _undeclared_value(name: str, declared: set[str]) -> Problem:
    fix = fix_for_unknown_name(name, declared, "omit it, or declare it under values")
    return Problem("conf", f"value '{name}' is given, but no environment declares it", fix)


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the distinct problems, sorted by file and line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (line_order(problem.where), problem.message))
