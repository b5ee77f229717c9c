"""The kinds of values that keys have: a name, a duration, an import path, and how each is checked."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, StringConstraints

T = TypeVar("T")
UNITS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
DURATION = re.compile(rf"^\s*(\d+)\s+({'|'.join(UNITS)})s?\s*$")


def milliseconds(duration: str) -> int:
    """'10 minutes' -> 600000; ValueError when it is not a duration."""
    match = DURATION.match(duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration; write a number and a unit, like '10 minutes'")
    return int(match[1]) * UNITS[match[2]]


def local_path(place: str) -> str:
    """The path of a place on a disk, with or without the `file:` of an address; empty for one in a store."""
    if place.startswith("file:/"):
        return "/" + place.removeprefix("file:").lstrip("/")
    return "" if re.match(r"[\w+.-]+:/", place) else place


def _duration(value: object) -> object:
    if isinstance(value, str):
        milliseconds(value)
    return value


Duration = Annotated[str, BeforeValidator(_duration)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
ImportPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Memory = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*[mg]$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
Setting = str | int | float | bool
TupleOf = Annotated[tuple[T, ...], Strict(False)]  # YAML has lists, frozen values have tuples


class Model(BaseModel):
    """Frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
