"""Check that files and tables are not shared between the users of a development target, or between targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.databricks.references import USER_REFERENCE, USER_REFERENCE_START, Unresolved
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.environment_files import SCHEME, EnvironmentDraft, read_environment
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment
from headrace.errors import Problem

REFERENCE = re.compile(r"\$\{([^}]*)\}")


def check_root_paths(targets: Mapping[str, Target], locations: KeyLocations) -> Iterator[Problem]:
    """Yield the root paths that all users of a development target would share, or that two targets have.

    Targets without a root path, or with an unresolved one, are not checked.
    """
    first_targets: dict[tuple[str, str, str], str] = {}  # the first target with each host, profile and root path
    for name, target in targets.items():
        path = target.root_path
        if not path or isinstance(path, Unresolved):
            continue
        where = locations.where("targets", name, "workspace", "root_path")
        is_in_home = path.startswith("~")
        if target.is_development and USER_REFERENCE_START not in path and not is_in_home:
            message = f"target '{name}': root_path is the same for all users, but the mode is development"
            yield Problem(where, message, f"add {USER_REFERENCE} to the path, or remove root_path")
        first = first_targets.setdefault((target.host, target.profile, path), name)
        if first != name:
            message = f"target '{name}' has the root_path of target '{first}': each would manage the other's jobs"
            yield Problem(where, message, "add ${bundle.target} to the path, or remove root_path")


def check_sharing(
    root: Path, environments: Sequence[EnvironmentDraft], jobs: Mapping[str, Sequence[Job]]
) -> Iterator[Problem]:
    """Yield the environments that write the tables or the checkpoints of another one.

    `jobs` has the jobs of each target, with whose values the locations are compared: those of development targets
    usually have the user's name. Invalid environments are not compared.
    """
    valid = [draft for draft in environments if draft.environment is not None]
    located = [(draft, list(_environments(root, draft, jobs.get(draft.name, ())))) for draft in valid]
    for (first, firsts), (second, seconds) in combinations(located, 2):
        for key in ("checkpoints", "tables"):
            shared = {_location(each, key) for each in firsts} & {_location(each, key) for each in seconds}
            if shared:
                message = f"{key}: environment '{second.name}' has the same {key} as '{first.name}'"
                fix = f"use a different location; that of '{first.name}' is at {first.locations.where(key)}"
                yield Problem(second.locations.where(key), f"{message}: each would write the other's", fix)


def _environments(root: Path, draft: EnvironmentDraft, jobs: Sequence[Job]) -> Iterator[Environment]:
    """Yield the environment with the values of each task that runs a pipeline in it; without tasks, as it is."""
    calls = [call for job in jobs for call in find_task_calls(job)]
    given = {tuple(parameter.value for parameter in call.all_parameters("value")) for call in calls} or {()}
    for assignments in given:
        pairs = (REFERENCE.sub(_name_of, assignment).partition("=") for assignment in assignments)
        resolved, _ = read_environment(root, draft.name, {name: value for name, _, value in pairs}, lenient=True)
        if resolved.environment is not None:
            yield resolved.environment


def _name_of(reference: re.Match[str]) -> str:
    """Return a name that stands for the value of a reference that the platform replaces, such as the user's name."""
    return re.sub(r"\W", "_", reference[1])


def _location(environment: Environment, key: str) -> tuple[str, ...]:
    """Return the location of an environment's `key`, which is "checkpoints" or "tables", in a form for comparison.

    The same path is another location in a workspace than on a machine, unless it is a URI.
    """
    system = "workspace" if environment.engine.kind == "databricks" else "machine"
    tables = environment.tables
    if key == "tables" and tables.root is None:
        return (system, str(tables.catalog).lower(), str(tables.schema_).lower())
    path = (environment.checkpoints if key == "checkpoints" else str(tables.root)).rstrip("/")
    return (path,) if SCHEME.match(path) else (system, path)
