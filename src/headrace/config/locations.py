"""File and line of each key, key paths as text for messages, and suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

# Keys whose children have names that the user chose, and what messages call such a child.
NAMED = {
    "steps": "step",
    "reads": "input",
    "sources": "source",
    "topics": "topic",
    "folders": "folder",
    "values": "value",
    "triggers": "trigger of",
    "targets": "target",
    "variables": "variable",
    "jobs": "job",
}
NUMBERED = {"expect": "rule", "writes": "sink", "tasks": "task", "job_clusters": "job cluster"}


@dataclass
class KeyLocations:
    """The line of each key of one file."""

    file: str
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def add_alias(self, path: KeyPath, alias: KeyPath) -> None:
        """Give a key and all keys below it a second path.

        A short form has the path of the long form too, and a misspelled key the path of the key that was intended.
        """
        below = {key: line for key, line in self.lines.items() if key[: len(path)] == path}
        self.lines.update({(*alias, *key[len(path) :]): line for key, line in below.items()})

    def where(self, *path: str | int) -> str:
        """Return file:line of the key, or of its nearest ancestor that is in the file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return f"{self.file}:{self.lines[()]}" if () in self.lines else self.file


def describe_path(path: KeyPath) -> str:
    """Return a key path as text: ('steps', 'a', 'reads', 'b', 'watermark') -> "step 'a', input 'b', watermark"."""
    parts: list[str] = []
    parent: str | int | None = None
    for key in path[1:] if path[:2] == ("resources", "jobs") else path:
        if parent in NAMED:
            parts[-1] = f"{NAMED[str(parent)]} '{key}'"
            parent = None
        elif isinstance(key, int):
            parts[-1] = f"{NUMBERED.get(str(parent), f'{parts[-1]}, entry')} {key + 1}"
            parent = None
        else:
            parts.append(key)
            parent = key
    return ", ".join(parts)


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to an unknown one, or None if none is similar."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)


def closest_match(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the fix for an unknown name: the most similar known name, else `otherwise`, else all known names."""
    choices = sorted(known)
    similar = closest_name(name, choices)
    if similar:
        return f"did you mean '{similar}'?"
    if otherwise or not choices:
        return otherwise or "remove it"
    return f"use one of: {', '.join(choices)}" if len(choices) > 1 else f"use '{choices[0]}'"


def line_order(where: str) -> tuple[str, int]:
    """Return the sort key of a problem's location: the file, then the line as a number."""
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, 0)
