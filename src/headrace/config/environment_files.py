"""Read conf/*.yml: replace the references in each environment file, and make paths absolute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.document import read_document, wrong_suffix
from headrace.config.locations import KeyLocations, KeyPath, fix_for_unknown_name
from headrace.config.model_builder import build_model
from headrace.config.models import Environment
from headrace.config.substitution import Values
from headrace.errors import Problem

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# The keys whose values are paths or URIs; "*" stands for any key.
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
    """One environment file, valid or not.

    `raw` is its data as read, an empty mapping if it cannot be read. `environment` is its model, or None if no valid
    model can be built from the data.
    """

    name: str
    locations: KeyLocations
    raw: Mapping[str, Any]
    values: Values
    environment: Environment | None = None

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names under a key such as sources, topics or folders, even if the file is invalid."""
        children = getattr(self.environment, key) if self.environment else self.raw.get(key)
        return tuple(children) if isinstance(children, dict) else ()


def environment_names(root: Path) -> list[str]:
    """Return the names of the bundle's environment files."""
    return sorted(path.stem for path in (root / "conf").glob("[!.]*.yml"))


def read_environment(
    root: Path, name: str, given: Mapping[str, str], *, lenient: bool = False
) -> tuple[EnvironmentDraft, list[Problem]]:
    """Return one environment and its problems.

    `given` are the values given with --value. If `lenient`, required values may be missing.
    """
    file = f"conf/{name}.yml"
    known = environment_names(root)
    if name not in known:
        fix = fix_for_unknown_name(name, known) if known else f"write {file}"
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
    for pattern in PATH_KEYS:
        data = _make_absolute(data, pattern, root)
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


def path_values(data: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the key path and the value of each path or URI in an environment's data."""
    for pattern in PATH_KEYS:
        yield from _matching_values(data, pattern, ())


def _matching_values(data: Any, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the key path and the value of each key that matches the pattern.

    `data` is the value at the key path `path`; the pattern is relative to it.
    """
    if not pattern:
        yield path, data
    elif isinstance(data, dict):
        for key in _matching_keys(data, pattern):
            yield from _matching_values(data[key], pattern[1:], (*path, key))


def _make_absolute(data: Any, pattern: KeyPath, root: Path) -> Any:
    """Return the data with the relative paths at the keys that match the pattern resolved against the bundle's root."""
    if not pattern:
        is_relative_path = isinstance(data, str) and data != "" and not is_absolute(data)
        return str(root / data) if is_relative_path else data
    if not isinstance(data, dict):
        return data
    absolute = {key: _make_absolute(data[key], pattern[1:], root) for key in _matching_keys(data, pattern)}
    return {**data, **absolute}


def _matching_keys(data: Mapping[str, Any], pattern: KeyPath) -> list[Any]:
    """Return the keys of a mapping that match the first part of the pattern."""
    return list(data) if pattern[0] == "*" else [key for key in data if key == pattern[0]]
