"""Which keys and kinds of values there are, and what a file says against them; of jobs by the SDK's own classes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyLocations, KeyPath, closest_match, describe_path
from headrace.config.model_builder import EXAMPLES, format_value
from headrace.errors import Problem

SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "must be text"),
    "whole number": ((int,), "must be a whole number"),
    "number": ((int, float), "must be a number"),
    "truth": ((bool,), "must be true or false"),
}
A_FEW = 15  # more known keys than these are no help in a message


@dataclass(frozen=True)
class Grammar:
    """Kinds by name: a mapping's keys and their kinds, or the words of an enumeration.

    A kind is one word: `text`, `Task`, `[Task]` for a list, `{text}` for a mapping; `!` stands behind what is needed.
    """

    kinds: Mapping[str, Mapping[str, str] | Sequence[str]]
    left: Mapping[str, Sequence[str]] = field(default_factory=dict)  # keys that only the official tool carries out

    def against(self, value: Any, kind: str, lines: KeyLocations, at: KeyPath) -> Iterator[Problem]:
        """What is wrong with a value that should be of a kind."""
        if kind == "anything" or isinstance(value, Unresolved):
            return
        if kind in SCALARS:
            types, message = SCALARS[kind]
            if not isinstance(value, types) or (isinstance(value, bool) and kind != "truth"):
                yield _wrong(message, value, lines, at)
        elif kind.startswith("["):
            if not isinstance(value, list):
                yield _wrong("must be a list", value, lines, at)
                return
            for number, inner in enumerate(value):
                yield from self.against(inner, kind[1:-1], lines, (*at, number))
        elif kind.startswith("{"):
            if not isinstance(value, dict):
                yield _wrong("must be a mapping", value, lines, at)
                return
            for key, inner in value.items():
                yield from self.against(inner, kind[1:-1], lines, (*at, key))
        else:
            yield from self._named(value, kind, lines, at)

    def _named(self, value: Any, kind: str, lines: KeyLocations, at: KeyPath) -> Iterator[Problem]:
        known = self.kinds[kind]
        if not isinstance(known, Mapping):
            if value not in known:
                message = f"{describe_path(at)}: unknown word {format_value(value)}"
                yield Problem(lines.where(*at), message, closest_match(str(value), known))
        elif not isinstance(value, dict):
            yield _wrong("must be a mapping", value, lines, at)
        else:
            words = f"{describe_path(at)}: " if at else ""
            for key, inner in value.items():
                if key in known:
                    yield from self.against(inner, known[key].rstrip("!"), lines, (*at, key))
                else:
                    message, fix = self._unknown(key, kind, known)
                    yield Problem(lines.where(*at, key), f"{words}{message}", fix)
            for key, inner_kind in known.items():
                if inner_kind.endswith("!") and key not in value:
                    yield Problem(lines.where(*at), f"{words}'{key}' is missing", f"add '{key}:' here")

    def _unknown(self, key: str, kind: str, known: Mapping[str, str]) -> tuple[str, str]:
        if key in self.left.get(kind, ()):
            return f"Headrace does not carry out '{key}'", "take it out, or deploy it with the official tool"
        if key == "<<":
            return "'<<' does not merge here", "write the keys out"
        return f"unknown key '{key}'", closest_match(key, known, "take it out" if len(known) > A_FEW else "")


@cache
def job_grammar() -> Grammar:
    """The grammar of a job, from the file that scripts/grammar/make.py writes."""
    kinds = json.loads(Path(__file__).with_name("job_grammar.json").read_text(encoding="utf-8"))
    return Grammar(kinds, {"JobSettings": ("lifecycle",)})


def _wrong(message: str, value: Any, lines: KeyLocations, at: KeyPath) -> Problem:
    words = f"{describe_path(at)}: " if at else ""
    return Problem(lines.where(*at), f"{words}{message}, not {format_value(value)}", EXAMPLES[message])
