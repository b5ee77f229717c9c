"""Writes the grammar of a job, as the SDK's own classes declare it, into src/headrace/config/databricks/job_grammar.json."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from pathlib import Path

from databricks.sdk.service import jobs

FILE = Path(__file__).resolve().parents[2] / "src" / "headrace" / "config" / "databricks" / "job_grammar.json"
SCALARS = {str: "text", int: "whole number", float: "number", bool: "truth"}


def made() -> str:
    """The text of the file: each class as its keys and their kinds, each enumeration as its words.

    A kind is one word: `text`, `Task`, `[Task]` for a list, `{text}` for a mapping; `!` stands behind what is needed.
    """
    kinds: dict[str, dict[str, str] | list[str]] = {}
    classes: dict[str, type] = {}
    kind_of(jobs.JobSettings, kinds, classes)
    kind_of(jobs.JobAccessControlRequest, kinds, classes)
    # databricks.yml has one key that is no setting of the job, and calls one thing otherwise than the SDK does.
    kinds["Permission"] = _permission(kinds.pop("JobAccessControlRequest"))
    job = kinds["JobSettings"]
    assert isinstance(job, dict)
    job["permissions"] = "[Permission]"
    rows = [f" {json.dumps(name)}: {json.dumps(kinds[name])}" for name in sorted(kinds)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _permission(request: dict[str, str] | list[str]) -> dict[str, str]:
    assert isinstance(request, dict)
    return {"level" if key == "permission_level" else key: kind for key, kind in request.items()} | {
        "level": request["permission_level"].rstrip("!") + "!"
    }


def kind_of(hint: object, kinds: dict[str, dict[str, str] | list[str]], classes: dict[str, type]) -> str:
    """A type as one word; the classes that it names are added to the kinds."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (hint,) = (one for one in inner if one is not type(None))
        return kind_of(hint, kinds, classes)
    if origin is list:
        return f"[{kind_of(inner[0], kinds, classes)}]"
    if origin is dict:
        return f"{{{kind_of(inner[1], kinds, classes)}}}"
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint]
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum)):
        return _named(hint, kinds, classes)
    return "anything"


def _named(cls: type, kinds: dict[str, dict[str, str] | list[str]], classes: dict[str, type]) -> str:
    name = cls.__name__
    if classes.setdefault(name, cls) is not cls:
        raise ValueError(f"two classes are called {name}")
    if name in kinds:
        return name
    if issubclass(cls, enum.Enum):
        kinds[name] = [word.value for word in cls]
        return name
    keys: dict[str, str] = {}
    kinds[name] = keys  # before its keys: a task may hold a task
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        keys[field.name] = kind_of(hints[field.name], kinds, classes) + ("!" if required else "")
    return name


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
