"""Check that each run_as and permission of targets and jobs names exactly one user, group or service principal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.databricks.job_grammar import intended_keys
from headrace.config.locations import KeyLocations, KeyPath
from headrace.errors import Problem

# The keys that name an identity: in the run_as of a target, and in permissions and the run_as of a job.
RUN_AS_KEYS = ("service_principal_name", "user_name")
PRINCIPAL_KEYS = ("group_name", "service_principal_name", "user_name")


def check_target_identities(targets: Mapping[str, Target], locations: KeyLocations) -> Iterator[Problem]:
    """Yield a problem for each run_as and permission of a target that names no identity, or several."""
    for name, target in targets.items():
        identities = [("run_as", target.run_as)] if target.run_as else []
        identities += [("permissions", permission) for permission in target.permissions]
        for key, identity in identities:
            allowed = RUN_AS_KEYS if key == "run_as" else PRINCIPAL_KEYS
            if (problem := _check_identity(identity, allowed)) is not None:
                message, fix = problem
                path: KeyPath = ("targets", name, key)
                # run_as and permissions at the top level apply to all targets.
                where = locations.where(*(path if path in locations.lines else (key,)))
                yield Problem(where, f"{key} {message}", fix)


def check_job_identities(job: Job) -> Iterator[Problem]:
    """Yield a problem for each run_as and permission of a job that names no identity, or several."""
    permissions = job.body.get("permissions")
    identities: list[tuple[KeyPath, Any]] = [(("run_as",), job.body.get("run_as"))]
    for index, permission in enumerate(permissions if isinstance(permissions, list) else []):
        identities.append((("permissions", index), permission))
    for path, identity in identities:
        if isinstance(identity, dict) and (problem := _check_identity(identity, PRINCIPAL_KEYS)) is not None:
            message, fix = problem
            yield Problem(job.where(*path), f"job '{job.key}', {path[0]} {message}", fix)


def _check_identity(identity: Mapping[str, Any], allowed: tuple[str, ...]) -> tuple[str, str] | None:
    """Return a message and a fix, or None if exactly one of the allowed keys is present.

    Misspelled keys count as present, because they are reported elsewhere.
    """
    keys = intended_keys(identity, (*allowed, "level"))
    count = sum(key in keys for key in allowed)
    if count == 1:
        return None
    return f"must name exactly one of {', '.join(allowed)}", "add one of them" if count == 0 else "keep one of them"
