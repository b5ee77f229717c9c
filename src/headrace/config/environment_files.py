"""Read conf/*.yml: environments with their values replaced and their paths made absolute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.document import read_document, wrong_suffix
from headrace.config.locations import KeyLocations, KeyPath, closest_match
from headrace.config.model_builder import build_model
from headrace.config.models import Environment
from headrace.config.substitution import Values
from headrace.errors import Problem

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
PATH_KEYS: tuple[KeyPath, ...] = (
    ("tables", "root"),
    ("checkpoints",),
    ("engine", "ivy_settings"),
    ("engine", "releases"),
    ("sources", "*", "path"),
    ("folders", "*"),
)


@dataclass(frozen=True)
class EnvironmentDraft:
    """One environment file: `raw` as it was read, `environment` only if it is valid."""

    name: str
    locations: KeyLocations
    raw: Mapping[str, Any]
    values: Values
    environment: Environment | None = None

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names under sources, topics or folders, even if the file is not valid."""
        children = getattr(self.environment, key) if self.environment else self.raw.get(key)
        return tuple(children) if isinstance(children, dict) else ()


def environment_names(root: Path) -> list[str]:
    """Return the names of the bundle's environment files."""
    return sorted(path.stem for path in (root / "conf").glob("[!.]*.yml"))


def read_environment(
    root: Path, name: str, given: Mapping[str, str], *, lenient: bool = False
) -> tuple[EnvironmentDraft, list[Problem]]:
    """Return one environment and its problems. If `lenient`, required values may be missing."""
    file = f"conf/{name}.yml"
    known = environment_names(root)
    if name not in known:
        fix = closest_match(name, known) if known else f"write {file}"
        problem = Problem("conf", f"there is no environment '{name}'", fix)
        if (root / f"conf/{name}.yaml").is_file():
            problem = wrong_suffix(f"conf/{name}.yaml")
        return EnvironmentDraft(name, KeyLocations(file), {}, Values(KeyLocations(file), {}, {})), [problem]
    document = read_document(root / file, file)
    declared = document.mapping.get("values")
    values = Values(document.locations, declared if isinstance(declared, dict) else {}, given, lenient)
    if document.data is None:
        return EnvironmentDraft(name, document.locations, {}, values), list(document.problems)
    raw = document.mapping
    substitution = values.substitute(raw)
    data = substitution.data
    for path in PATH_KEYS:
        data = _make_absolute(data, path, root)
    invalid = document.invalid | substitution.unresolved
    environment, problems = build_model(Environment, data, document.locations, (), invalid=invalid, name=name)
    return EnvironmentDraft(name, document.locations, raw, values, environment), [
        *document.problems,
        *values.problems(),
        *substitution.problems,
        *problems,
    ]


def is_absolute(location: str) -> bool:
    """Return whether a location is an absolute path or a URI."""
    return location.startswith("/") or SCHEME.match(location) is not None


def path_values(data: Any, path: KeyPath = (), keys: tuple[KeyPath, ...] = PATH_KEYS) -> Iterator[tuple[KeyPath, Any]]:
    """Yield each key path of an environment whose value is a path or a URI, and the value."""
    for key_path in keys:
        if not key_path:
            yield path, data
        elif isinstance(data, dict):
            for key in data if key_path[0] == "*" else [key_path[0]]:
                if key in data:
                    yield from path_values(data[key], (*path, key), (key_path[1:],))


def _make_absolute(data: Any, path: KeyPath, root: Path) -> Any:
    """Return the data with the relative paths at a key path resolved against the bundle's root."""
    if not path:
        return data if not isinstance(data, str) or not data or is_absolute(data) else str(root / data)
    if not isinstance(data, dict):
        return data
    keys = list(data) if path[0] == "*" else [path[0]]
    return {**data, **{key: _make_absolute(data[key], path[1:], root) for key in keys if key in data}}
