"""Check that files and tables are not shared between the users of a development target, or between targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from headrace.config.databricks.job_definitions import Target
from headrace.config.databricks.references import USER_REFERENCE, USER_REFERENCE_START, Unresolved
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment
from headrace.errors import Problem


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


def check_sharing(environments: Sequence[EnvironmentDraft], targets: Mapping[str, Target]) -> Iterator[Problem]:
    """Yield the environments of development targets that share tables or checkpoints with another target's environment.

    Invalid environments are not checked.
    """
    deployed = [draft for draft in environments if draft.name in targets and draft.environment is not None]
    for first, second in combinations(deployed, 2):
        if not (targets[first.name].is_development or targets[second.name].is_development):
            continue
        development, other = (first, second) if targets[first.name].is_development else (second, first)
        for key in ("checkpoints", "tables"):
            if (
                development.environment
                and other.environment
                and _location(development.environment, key) == _location(other.environment, key)
            ):
                conflict = f"is for development, but shares {key} with '{other.name}'"
                message = f"{key}: environment '{development.name}' {conflict}"
                fix = f"use a different location; that of '{other.name}' is at {other.locations.where(key)}"
                yield Problem(development.locations.where(key), message, fix)


def _location(environment: Environment, key: str) -> tuple[str, ...]:
    """Return the location of an environment's `key`, which is "checkpoints" or "tables", in a form for comparison."""
    if key == "checkpoints":
        return (environment.checkpoints.rstrip("/"),)
    tables = environment.tables
    if tables.root is not None:
        return (tables.root.rstrip("/"),)
    return (str(tables.catalog).lower(), str(tables.schema_).lower())
