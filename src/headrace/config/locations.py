"""The file and line of each key, key paths as text for messages, and fixes for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

# Keys whose children have names that the user chose, and the noun for such a child in messages.
NOUNS_OF_NAMED_CHILDREN = {
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
# Keys whose children are the entries of a list, and the noun for such an entry in messages.
NOUNS_OF_ENTRIES = {"expect": "rule", "writes": "sink", "tasks": "task", "job_clusters": "job cluster"}


@dataclass
class KeyLocations:
    """The line of each key of one file. The empty key path stands for the whole file."""

    file: str
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def add_alias(self, path: KeyPath, alias: KeyPath) -> None:
        """Add `alias` as a second path of the key at `path`, and second paths of all keys inside it.

        A file may contain a misspelled key or a short form, at `path`. Checks use the path of the correctly spelled key
        or of the long form, `alias`.
        """
        lines = {key_path: line for key_path, line in self.lines.items() if key_path[: len(path)] == path}
        self.lines.update({(*alias, *key_path[len(path) :]): line for key_path, line in lines.items()})

    def where(self, *path: str | int) -> str:
        """Return file:line of the key at a path.

        If the file lacks the key, use the innermost key that would contain it. If no line is known, return only the
        file.
        """
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return f"{self.file}:{self.lines[()]}" if () in self.lines else self.file


def describe_path(path: KeyPath) -> str:
    """Return a key path as text: ('steps', 'a', 'reads', 'b', 'watermark') -> "step 'a', input 'b', watermark"."""
    parts: list[str] = []
    parent: str | int | None = None
    described_path = path[1:] if path[:2] == ("resources", "jobs") else path
    for key in described_path:
        if parent in NOUNS_OF_NAMED_CHILDREN:
            parts[-1] = f"{NOUNS_OF_NAMED_CHILDREN[str(parent)]} '{key}'"
            parent = None
        elif isinstance(key, int):
            noun = NOUNS_OF_ENTRIES.get(str(parent), f"{parts[-1]}, entry")
            parts[-1] = f"{noun} {key + 1}"
            parent = None
        else:
            parts.append(key)
            parent = key
    return ", ".join(parts)


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to an unknown name, or None if no known name is similar."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)


def fix_for_unknown_name(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the fix for an unknown name: suggest the most similar known name.

    If no known name is similar, return `otherwise`; if `otherwise` is empty, suggest all known names, or to remove the
    unknown name if there are none.
    """
    choices = sorted(known)
    similar = closest_name(name, choices)
    if similar:
        return f"did you mean '{similar}'?"
    if otherwise or not choices:
        return otherwise or "remove it"
    return f"use one of: {', '.join(choices)}" if len(choices) > 1 else f"use '{choices[0]}'"


def line_order(where: str) -> tuple[str, int]:
    """Return the sort key of a problem's location: the file and the line number (0 if it has no line)."""
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, 0)
