"""Check YAML data against a grammar of keys and types. The grammar of a job is generated from the Databricks SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyLocations, KeyPath, closest_name, describe_path, fix_for_unknown_name
from headrace.config.model_builder import TYPE_FIXES, TYPE_MESSAGES, format_value
from headrace.errors import Problem

# For each scalar kind, the Python types that it allows, and the requirement that is reported for other types.
SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), TYPE_MESSAGES["string_type"]),
    "integer": ((int,), TYPE_MESSAGES["int_type"]),
    "number": ((int, float), TYPE_MESSAGES["float_type"]),
    "boolean": ((bool,), TYPE_MESSAGES["bool_type"]),
}
MAX_LISTED_KEYS = 15  # a fix does not list more known keys than this


@dataclass(frozen=True)
class Grammar:
    """The kinds of values that YAML data may have.

    `kinds` defines the named kinds: a mapping by its keys and the kinds of their values, an enumeration by its values.
    A kind is `any`, a scalar such as `string`, a name in `kinds` such as `Task`, a list such as `[Task]`, or a mapping
    with any keys such as `{string}`, whose values are all of one kind. A trailing `!` marks a required key.

    `unsupported` lists, for a named kind, the keys that only the Databricks CLI supports.
    """

    kinds: Mapping[str, Mapping[str, str] | Sequence[str]]
    unsupported: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def check(self, value: Any, kind: str, locations: KeyLocations, path: KeyPath) -> Iterator[Problem]:
        """Yield the problems of the value at a key path, which must be of the given kind.

        An `Unresolved` value may be of any kind.
        """
        if kind == "any" or isinstance(value, Unresolved):
            return
        if kind in SCALARS:
            types, requirement = SCALARS[kind]
            if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
                yield _wrong_type(requirement, value, locations, path)
        elif kind.startswith("["):
            if not isinstance(value, list):
                yield _wrong_type(TYPE_MESSAGES["tuple_type"], value, locations, path)
                return
            for index, inner in enumerate(value):
                yield from self.check(inner, kind[1:-1], locations, (*path, index))
        elif kind.startswith("{"):
            if not isinstance(value, dict):
                yield _wrong_type(TYPE_MESSAGES["dict_type"], value, locations, path)
                return
            for key, inner in value.items():
                yield from self.check(inner, kind[1:-1], locations, (*path, key))
        else:
            yield from self._check_named(value, kind, locations, path)

    def _check_named(self, value: Any, kind: str, locations: KeyLocations, path: KeyPath) -> Iterator[Problem]:
        """Yield the problems of a value whose kind is a name in `kinds`."""
        known = self.kinds[kind]  # the keys of a mapping, or the values of an enumeration
        if not isinstance(known, Mapping):
            if value not in known:
                message = f"{describe_path(path)}: unknown value {format_value(value)}"
                yield Problem(locations.where(*path), message, fix_for_unknown_name(str(value), known))
        elif not isinstance(value, dict):
            yield _wrong_type(TYPE_MESSAGES["dict_type"], value, locations, path)
        else:
            prefix = f"{describe_path(path)}: " if path else ""
            for key, inner in value.items():
                if key in known:
                    yield from self.check(inner, known[key].rstrip("!"), locations, (*path, key))
                else:
                    message, fix = self._unknown_key(key, kind, known)
                    yield Problem(locations.where(*path, key), f"{prefix}{message}", fix)
            intended = intended_keys(value, known)
            for key, inner_kind in known.items():
                if inner_kind.endswith("!") and key not in intended:
                    yield Problem(locations.where(*path), f"{prefix}'{key}' is missing", f"add '{key}:' here")

    def _unknown_key(self, key: str, kind: str, known: Mapping[str, str]) -> tuple[str, str]:
        """Return the message and the fix for a key that a kind does not have."""
        if key in self.unsupported.get(kind, ()):
            return f"Headrace does not support '{key}'", "remove it, or deploy the bundle with the Databricks CLI"
        if key == "<<":
            return "the merge key '<<' is not supported", "write the keys out"
        otherwise = "remove it, or upgrade Headrace if it is a new field of Databricks"
        fix = fix_for_unknown_name(key, known, otherwise if len(known) > MAX_LISTED_KEYS else "")
        return f"unknown key '{key}'", fix


def intended_keys(keys: Iterable[str], known: Iterable[str]) -> set[str]:
    """Return the keys, with each unknown key replaced by the most similar known key. Keep it if none is similar.

    With this result, checks do not report a key as missing if it is misspelled. The misspelled key is reported as
    unknown.
    """
    known = set(known)
    return {key if key in known else closest_name(key, known) or key for key in keys}


@cache
def job_grammar() -> Grammar:
    """Return the grammar of a job, from the file that scripts/grammar/make.py generates."""
    kinds = json.loads(Path(__file__).with_name("job_grammar.json").read_text(encoding="utf-8"))
    return Grammar(kinds, {"JobSettings": ("lifecycle",)})


def _wrong_type(requirement: str, value: Any, locations: KeyLocations, path: KeyPath) -> Problem:
    """Return the problem of a value that does not meet a requirement such as "must be text"."""
    prefix = f"{describe_path(path)}: " if path else ""
    return Problem(locations.where(*path), f"{prefix}{requirement}, not {format_value(value)}", TYPE_FIXES[requirement])
