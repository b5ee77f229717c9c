"""What targets would share: two people one target for development, two targets one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from headrace.config.databricks.job_definitions import Target
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment
from headrace.errors import Problem

PERSON = "${workspace.current_user."


def check_root_paths(targets: Mapping[str, Target], lines: KeyLocations) -> Iterator[Problem]:
    """The targets with one directory in the workspace: for development for everybody, or two of them with the same."""
    seen: dict[tuple[str, str, str], str] = {}
    for name, target in targets.items():
        path = target.root_path
        if target.is_development and path and PERSON not in path and not path.startswith("~"):
            where = lines.where("targets", name, "workspace", "root_path")
            message = f"target '{name}': root_path is the same for everybody, but the mode is development"
            yield Problem(where, message, f"put {PERSON}short_name}} into it, or take it out")
        first = seen.setdefault((target.host, target.profile, path), name)
        if path and first != name:
            where = lines.where("targets", name, "workspace", "root_path")
            message = (
                f"target '{name}': root_path is that of target '{first}': each would take the other's jobs for its own"
            )
            yield Problem(where, message, "put ${bundle.target} into it, or take it out")


def check_sharing(environments: Sequence[EnvironmentDraft], targets: Mapping[str, Target]) -> Iterator[Problem]:
    """The environments of targets for development that put tables or checkpoints where another target does."""
    deployed = [draft for draft in environments if draft.name in targets and draft.environment is not None]
    for first, other in combinations(deployed, 2):
        if not (targets[first.name].is_development or targets[other.name].is_development):
            continue
        here, there = (first, other) if targets[first.name].is_development else (other, first)
        for key in ("checkpoints", "tables"):
            if (
                here.environment
                and there.environment
                and _place(here.environment, key) == _place(there.environment, key)
            ):
                message = f"{key}: environment '{here.name}' is for development, but has the same as '{there.name}'"
                fix = f"give each its own; the other is at {there.locations.where(key)}"
                yield Problem(here.locations.where(key), message, fix)


def _place(environment: Environment, key: str) -> tuple[str, ...]:
    if key == "checkpoints":
        return (environment.checkpoints.rstrip("/"),)
    tables = environment.tables
    if tables.root is not None:
        return (tables.root.rstrip("/"),)
    return (str(tables.catalog).lower(), str(tables.schema_).lower())
