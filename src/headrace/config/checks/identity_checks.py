"""Whom targets and jobs name: in each place exactly one person, group or service principal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.locations import KeyLocations, KeyPath
from headrace.errors import Problem

RUN_AS = ("service_principal_name", "user_name")
NAMED = ("group_name", "service_principal_name", "user_name")


def check_target_people(targets: Mapping[str, Target], lines: KeyLocations) -> Iterator[Problem]:
    """The identities of targets, and their permissions, that name nobody or several."""
    for name, target in targets.items():
        named = [("run_as", target.run_as, RUN_AS)] if target.run_as else []
        for key, one, known in [*named, *(("permissions", one, NAMED) for one in target.permissions)]:
            if (wrong := _wrong(one, known)) is not None:
                at: KeyPath = ("targets", name, key)
                yield Problem(lines.where(*(at if at in lines.lines else (key,))), f"{key} {wrong[0]}", wrong[1])


def check_job_people(job: Job) -> Iterator[Problem]:
    """The identity of a job, and its permissions, that name nobody or several."""
    run_as, permissions = job.body.get("run_as"), job.body.get("permissions")
    named: list[tuple[KeyPath, Any, tuple[str, ...]]] = [(("run_as",), run_as, NAMED)]
    for number, one in enumerate(permissions if isinstance(permissions, list) else []):
        named.append((("permissions", number), one, NAMED))
    for at, one, known in named:
        if isinstance(one, dict) and (wrong := _wrong(one, known)) is not None:
            yield Problem(job.where(*at), f"job '{job.key}', {at[0]} {wrong[0]}", wrong[1])


def _wrong(one: Mapping[str, Any], known: tuple[str, ...]) -> tuple[str, str] | None:
    count = sum(key in one for key in known)
    if count == 1:
        return None
    return f"must name exactly one of {', '.join(known)}", "add one of them" if count == 0 else "keep one of them"
