"""The entry points of wheels and their parameters, read without installing or importing the wheels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HEADRACE = "headrace"
# The entry points of the group headrace.jobs, each with the layer whose steps it runs; None stands for all layers.
ENTRY_POINT_LAYERS: dict[str, str | None] = {"bronze": "bronze", "gold": "gold", "run": None, "silver": "silver"}
# The parameters of each of these entry points.
PARAMETERS = ("conf", "env", "pipeline", "step", "value")
REQUIRED_PARAMETERS = ("pipeline", "env")


def entry_points_of(package: str, root: Path) -> tuple[str, ...] | None:
    """Return the entry points that a job can call in a package; None if they cannot be determined.

    They can be determined for Headrace, and for the bundle's own package unless its pyproject.toml declares entry
    points as dynamic.
    """
    if is_headrace(package):
        return tuple(ENTRY_POINT_LAYERS)
    project = _project(root)
    if not _is_same_package(package, str(project.get("name", ""))) or "entry-points" in project.get("dynamic", ()):
        return None
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return tuple(sorted({name for group in groups for name in group}))


def is_headrace(package: str) -> bool:
    """Return whether the package is Headrace."""
    return _is_same_package(package, HEADRACE)


def _project(root: Path) -> dict[str, Any]:
    import tomllib  # imported here, because it is needed only for jobs that call another package

    try:
        with (root / "pyproject.toml").open("rb") as file:
            content = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    project = content.get("project")
    return project if isinstance(project, dict) else {}


def _is_same_package(name: str, other: str) -> bool:
    """Return whether installers treat two package names as equal."""
    return re.sub(r"[-_.]+", "-", name).lower() == re.sub(r"[-_.]+", "-", other).lower()
