"""The types of values in YAML files (names, durations, import paths and others) and their validation."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, StringConstraints, WithJsonSchema

T = TypeVar("T")
MILLISECONDS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
DURATION = re.compile(rf"^\s*(\d+)\s+({'|'.join(MILLISECONDS)})s?\s*$")


def milliseconds(duration: str) -> int:
    """Return a duration in milliseconds: '10 minutes' -> 600000. Raise ValueError for other text."""
    match = DURATION.match(duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration; write a number and a unit, like '10 minutes'")
    return int(match[1]) * MILLISECONDS[match[2]]


def yaml_type(value: object) -> str:
    """Return "mapping" or "scalar". By this tag, Pydantic chooses the member of a union that validates the value."""
    return "mapping" if isinstance(value, (dict, BaseModel)) else "scalar"


def local_path(location: str) -> str:
    """Return the local path of a path or `file:` URI; an empty string for other URIs, such as `s3://…`."""
    if location.startswith("file:/"):
        return "/" + location.removeprefix("file:").lstrip("/")
    return "" if re.match(r"[\w+.-]+:/", location) else location


def _validate_duration(value: object) -> object:
    """Return the value. Raise ValueError for text that is not a duration; Pydantic reports values that are not text."""
    if isinstance(value, str):
        milliseconds(value)
    return value


Duration = Annotated[
    str, BeforeValidator(_validate_duration), WithJsonSchema({"type": "string", "pattern": DURATION.pattern})
]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
# The same pattern. Pydantic's regular expressions have no \Z; their `$` does not match before a final line break.
ImportPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
# The size of Java's heap, like 512m or 2g.
Memory = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*[mg]$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
Setting = str | int | float | bool  # the value of a Spark setting, or of an option of a source or sink
TupleOf = Annotated[tuple[T, ...], Strict(False)]  # Strict(False) converts YAML lists to tuples, which are immutable


class Model(BaseModel):
    """Base class of all models. Models are frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
