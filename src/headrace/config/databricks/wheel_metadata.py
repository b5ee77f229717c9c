"""Which entry points and parameters a wheel has, known without installing or importing it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HEADRACE = "headrace"
# Entry points of the group headrace.jobs, each with the layer whose steps it runs.
LAYER_OF: dict[str, str | None] = {"bronze": "bronze", "gold": "gold", "run": None, "silver": "silver"}
PARAMETERS = ("conf", "env", "pipeline", "step", "value")
REQUIRED = ("pipeline", "env")


def entry_points_of(package: str, root: Path) -> tuple[str, ...] | None:
    """The names that a job can call in a package; None when it is not for us to know."""
    if _same(package, HEADRACE):
        return tuple(LAYER_OF)
    project = _project(root)
    if not _same(package, str(project.get("name", ""))) or "entry-points" in project.get("dynamic", ()):
        return None
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return tuple(sorted({name for group in groups for name in group}))


def is_ours(package: str) -> bool:
    """Whether the wheel is Headrace's own."""
    return _same(package, HEADRACE)


def _project(root: Path) -> dict[str, Any]:
    import tomllib  # only where a job calls another package

    try:
        with (root / "pyproject.toml").open("rb") as file:
            read = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    project = read.get("project")
    return project if isinstance(project, dict) else {}


def _same(one: str, other: str) -> bool:
    """Whether two names of packages are the same to installers."""
    return re.sub(r"[-_.]+", "-", one).lower() == re.sub(r"[-_.]+", "-", other).lower()
