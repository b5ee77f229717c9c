"""The signature of a query: a small value that describes what the query computes, stored as JSON.

It is computed over empty inputs, so it contains no locations. Unchanged code has the same signature in every process,
on every machine and in every environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

FORMAT = 1
VERSION_FIELDS = ("format", "spark", "python")


@dataclass(frozen=True)
class Input:
    """An input of the query: its name in the step, and what it reads."""

    input: str  # the name in the step
    kind: str  # of what the input reads, such as "source" or "table"
    name: str = ""  # of what the input reads, such as "table orders"


@dataclass(frozen=True)
class Column:
    """A column that an operator uses or the query returns: its name, its type, and how it is computed."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Watermark:
    """A watermark: the column, and the delay in words."""

    column: str
    delay: str


@dataclass(frozen=True)
class Operator:
    """An operator of the query that has state or joins a static input."""

    kind: str
    keys: tuple[Column, ...] = ()
    values: tuple[Column, ...] = ()  # of an aggregation: its aggregates
    properties: Mapping[str, str] = field(default_factory=dict)  # join type, condition, hash of a function, timeout…
    state_columns: tuple[str, ...] = ()  # the column types of each state store's rows; empty if unknown


@dataclass(frozen=True)
class Signature:
    """What a query computes, and the versions with which the signature was made."""

    sources: tuple[Input, ...]  # in the order of the checkpoint's offsets
    static_inputs: tuple[Input, ...]
    stateful: tuple[Operator, ...]  # in the order of the checkpoint's state directories
    watermarks: tuple[Watermark, ...]
    filters: tuple[str, ...]
    joins: tuple[Operator, ...]  # with static inputs
    others: tuple[str, ...]  # all other operators
    output: tuple[Column, ...]
    output_mode: str
    sinks: tuple[Mapping[str, Any], ...]
    time_zone: str
    ansi: bool
    spark: str
    python: str
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """Return 12 hexadecimal digits that identify everything except the versions."""
        content = {name: value for name, value in self.to_json().items() if name not in VERSION_FIELDS}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Return the signature as JSON values, in a stable order and without empty parts."""
        versions = {name: getattr(self, name) for name in VERSION_FIELDS}
        return {**versions, **_json(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Signature:
        """Return the signature that `to_json` has written. Raise ValueError if the format is unknown or invalid."""
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            actual = content.get("format") if isinstance(content, Mapping) else None
            raise ValueError(f"signature has format {actual!r}, but only {FORMAT} is known")
        try:
            return cls(
                sources=tuple(Input(**item) for item in content.get("sources", ())),
                static_inputs=tuple(Input(**item) for item in content.get("static_inputs", ())),
                stateful=tuple(map(_operator, content.get("stateful", ()))),
                watermarks=tuple(Watermark(**item) for item in content.get("watermarks", ())),
                filters=tuple(content.get("filters", ())),
                joins=tuple(map(_operator, content.get("joins", ()))),
                others=tuple(content.get("others", ())),
                output=_columns(content.get("output", ())),
                output_mode=content["output_mode"],
                sinks=tuple(content.get("sinks", ())),
                time_zone=content["time_zone"],
                ansi=content["ansi"],
                spark=content["spark"],
                python=content["python"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"signature is invalid: {type(error).__name__}: {error}") from error


def _json(value: Any) -> Any:
    """Return a value of this module as JSON values; empty fields are omitted."""
    if isinstance(value, Column):  # a list, because a query has many
        return [value.name, value.type, value.text]
    if isinstance(value, (Signature, Input, Watermark, Operator)):
        named = ((item.name, _json(getattr(value, item.name))) for item in fields(value))
        return {name: content for name, content in named if content not in ("", [], {})}
    if isinstance(value, Mapping):
        return {name: _json(value[name]) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    return value


def _operator(content: Mapping[str, Any]) -> Operator:
    return Operator(
        kind=content["kind"],
        keys=_columns(content.get("keys", ())),
        values=_columns(content.get("values", ())),
        properties=dict(content.get("properties", {})),
        state_columns=tuple(content.get("state_columns", ())),
    )


def _columns(content: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    return tuple(Column(*item) for item in content)
