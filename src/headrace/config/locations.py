"""A key's path -> the file and line where it is written, and the same path in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

# Keys whose children carry names that the user chose, and what such a child is called.
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


@dataclass(frozen=True)
class KeyLocations:
    """The lines of one file's keys."""

    file: str
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def also(self, written: KeyPath, meant: KeyPath) -> None:
        """A key and all in it have another path too: where a short form is written, or one key was meant by another."""
        inside = {path: line for path, line in self.lines.items() if path[: len(written)] == written}
        self.lines.update({(*meant, *path[len(written) :]): line for path, line in inside.items()})

    def where(self, *path: str | int) -> str:
        """file:line of the key, or of the nearest key around it that is written."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return f"{self.file}:{self.lines[()]}" if () in self.lines else self.file


def describe_path(path: KeyPath) -> str:
    """('steps', 'a', 'reads', 'b', 'watermark') -> "step 'a', input 'b', watermark"."""
    words: list[str] = []
    before: str | int | None = None
    for key in path[1:] if path[:2] == ("resources", "jobs") else path:
        if before in NAMED:
            words[-1] = f"{NAMED[str(before)]} '{key}'"
            before = None
        elif isinstance(key, int):
            words[-1] = f"{NUMBERED.get(str(before), f'{words[-1]}, entry')} {key + 1}"
            before = None
        else:
            words.append(key)
            before = key
    return ", ".join(words)


def closest_name(word: str, known: Iterable[str]) -> str | None:
    """The known word that a word not known was probably meant to be."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)), None)


def closest_match(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A fix for a word that is not known: the nearest one, else all of them."""
    choices = sorted(known)
    close = closest_name(word, choices)
    if close:
        return f"did you mean '{close}'?"
    if otherwise or not choices:
        return otherwise or "take it out"
    return f"known here: {', '.join(choices)}"


def line_order(where: str) -> tuple[str, int]:
    """What problems are sorted by: the file, then the line as a number."""
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, 0)
