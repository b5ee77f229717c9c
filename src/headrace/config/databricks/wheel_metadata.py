"""The entry points of Headrace's wheel and of the bundle's own wheel, without installing or importing the wheels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HEADRACE = "headrace"
# The entry points of the group headrace.jobs, each with the layer whose steps it runs; None stands for all layers.
ENTRY_POINT_LAYERS: dict[str, str | None] = {"bronze": "bronze", "gold": "gold", "run": None, "silver": "silver"}
# The parameters of each of these entry points. `step` and `value` may be passed several times.
PARAMETERS = ("conf", "env", "pipeline", "step", "value")
REQUIRED_PARAMETERS = ("pipeline", "env")


def entry_points_of(package: str, root: Path) -> tuple[str, ...] | None:
    """Return the entry points of a package, which a job can call; None if they cannot be determined.

    The entry points can be determined only for Headrace and for the bundle's own package. If the pyproject.toml in
    `root` declares entry points as dynamic, those of the bundle's package cannot be determined either.
    """
    if is_headrace(package):
        return tuple(ENTRY_POINT_LAYERS)
    project = _project(root)
    if not _is_same_package(package, str(project.get("name", ""))) or "entry-points" in project.get("dynamic", ()):
        return None
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return tuple(sorted({name for group in groups for name in group}))


def is_headrace(package: str) -> bool:
    """Return whether a package name is Headrace's."""
    return _is_same_package(package, HEADRACE)


def _project(root: Path) -> dict[str, Any]:
    """Return the table [project] of the bundle's pyproject.toml; an empty mapping if it cannot be read."""
    import tomllib  # imported here, because only jobs that call another package than Headrace need it

    try:
        with (root / "pyproject.toml").open("rb") as file:
            content = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    project = content.get("project")
    return project if isinstance(project, dict) else {}


def _is_same_package(name: str, other: str) -> bool:
    """Return whether two names denote the same package: case, and which of "-", "_" and "." is used, do not matter."""
    return re.sub(r"[-_.]+", "-", name).lower() == re.sub(r"[-_.]+", "-", other).lower()
