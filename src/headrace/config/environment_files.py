"""conf/*.yml -> environments: values put in, places made absolute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.document import read_document
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
    """One environment file as far as it could be read: `raw` as written, `environment` if well formed."""

    name: str
    locations: KeyLocations
    raw: Mapping[str, Any]
    values: Values
    environment: Environment | None = None

    def names(self, key: str) -> tuple[str, ...]:
        """The names that stand under sources, topics or folders, also when the file is not well formed."""
        found = getattr(self.environment, key) if self.environment else self.raw.get(key)
        return tuple(found) if isinstance(found, dict) else ()


def environment_names(root: Path) -> list[str]:
    """The environments that the bundle has files for."""
    return sorted(path.stem for path in (root / "conf").glob("[!.]*.yml"))


def read_environment(
    root: Path, name: str, given: Mapping[str, str], *, lenient: bool = False
) -> tuple[EnvironmentDraft, list[Problem]]:
    """One environment; lenient lets required values be missing."""
    file = f"conf/{name}.yml"
    known = environment_names(root)
    if name not in known:
        fix = closest_match(name, known) if known else f"write {file}"
        problem = Problem("conf", f"there is no environment '{name}'", fix)
        return EnvironmentDraft(name, KeyLocations(file), {}, Values(KeyLocations(file), {}, {})), [problem]
    document = read_document(root / file, file)
    declared = document.mapping.get("values")
    values = Values(document.locations, declared if isinstance(declared, dict) else {}, given, lenient)
    if document.data is None:
        return EnvironmentDraft(name, document.locations, {}, values), list(document.problems)
    values.check()
    raw = document.mapping
    filled = {key: part if key == "values" else values.into(part, key) for key, part in raw.items()}
    for place in PATH_KEYS:
        filled = _absolute(filled, place, root)
    environment, problems = build_model(Environment, filled, document.locations, (), name=name)
    return EnvironmentDraft(name, document.locations, raw, values, environment), [
        *document.problems,
        *values.problems,
        *problems,
    ]


def is_absolute(place: str) -> bool:
    """Whether a place stands on its own: a path from the root, or a URI."""
    return place.startswith("/") or SCHEME.match(place) is not None


def path_values(
    data: Any, path: KeyPath = (), wanted: tuple[KeyPath, ...] = PATH_KEYS
) -> Iterator[tuple[KeyPath, Any]]:
    """The key paths at which an environment names a directory or a file, and what stands there."""
    for place in wanted:
        if not place:
            yield path, data
        elif isinstance(data, dict):
            for key in data if place[0] == "*" else [place[0]]:
                if key in data:
                    yield from path_values(data[key], (*path, key), (place[1:],))


def _absolute(data: Any, place: KeyPath, root: Path) -> Any:
    if not place:
        return data if not isinstance(data, str) or not data or is_absolute(data) else str(root / data)
    if not isinstance(data, dict):
        return data
    keys = list(data) if place[0] == "*" else [place[0]]
    return {**data, **{key: _absolute(data[key], place[1:], root) for key in keys if key in data}}
