"""databricks.yml and its resources: the part that is read today, the rest let through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.document import Document, read
from headrace.config.locate import Lines
from headrace.config.models import Target
from headrace.errors import Problem

FILE = "databricks.yml"
MODES = ("development", "production")


@dataclass
class Resources:
    """What databricks.yml and the files it includes say."""

    name: str
    lines: Lines = field(default_factory=lambda: Lines(FILE))
    targets: dict[str, Target] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    written: bool = True


def read_resources(root: Path) -> Resources:
    """databricks.yml and what it includes; without one, a bundle is named after its directory."""
    if not (root / FILE).is_file():
        return Resources(name=root.name, written=False)
    document = read(root / FILE, FILE, strict=False)
    found = Resources(root.name, document.lines, problems=list(document.problems))
    if not document.mapping:
        return found
    bundle = document.mapping.get("bundle")
    name = bundle.get("name") if isinstance(bundle, dict) else None
    if isinstance(name, str) and name:
        found.name = name
    else:
        found.problems.append(
            Problem(document.lines.where("bundle"), "bundle: 'name' is missing", "add 'bundle: {name: …}'")
        )
    found.targets = _targets(document, found.problems)
    _jobs(document, found)
    for file in _included(root, document, found.problems):
        included = read(file, file.relative_to(root).as_posix(), strict=False)
        found.problems += included.problems
        _jobs(included, found)
    return found


def _targets(document: Document, problems: list[Problem]) -> dict[str, Target]:
    targets = {}
    for name, target in _mapping(document, "targets", problems).items():
        mode = target.get("mode") if isinstance(target, dict) else None
        if mode is not None and mode not in MODES:
            where = document.lines.where("targets", name, "mode")
            problems.append(
                Problem(where, f"target '{name}', mode: unknown word {mode!r}", f"known here: {', '.join(MODES)}")
            )
            mode = None
        targets[name] = Target(name=name, mode=mode)
    return targets


def _included(root: Path, document: Document, problems: list[Problem]) -> list[Path]:
    patterns = document.mapping.get("include", [])
    if not isinstance(patterns, list):
        problems.append(
            Problem(document.lines.where("include"), "include: must be a list", "write it in brackets: [a, b]")
        )
        return []
    files: dict[Path, None] = {}
    for at, pattern in enumerate(patterns):
        where = document.lines.where("include", at)
        relative = isinstance(pattern, str) and pattern and not Path(pattern).is_absolute()
        matched = sorted(file for file in root.glob(pattern) if file.is_file()) if relative else []
        if not matched:
            fix = f"correct it, or add a file; it starts at the directory of {FILE}"
            problems.append(Problem(where, f"include: '{pattern}' matches no file", fix))
        files.update(dict.fromkeys(matched))
    return list(files)


def _jobs(document: Document, found: Resources) -> None:
    resources = _mapping(document, "resources", found.problems)
    jobs: Any = resources.get("jobs") or {}
    for name in jobs if isinstance(jobs, Mapping) else ():
        where = document.lines.where("resources", "jobs", name)
        if name in found.jobs:
            fix = f"keep one of them; the first is at {found.jobs[name]}"
            found.problems.append(Problem(where, f"job '{name}' is written twice", fix))
        found.jobs.setdefault(name, where)


def _mapping(document: Document, key: str, problems: list[Problem]) -> dict[str, Any]:
    value = document.mapping.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(Problem(document.lines.where(key), f"{key}: must hold keys and their values", "write {key: value}"))
    return {}
