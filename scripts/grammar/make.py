"""Generate src/headrace/config/databricks/job_grammar.json: the keys and types of a job, from the SDK's classes."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from pathlib import Path

from databricks.sdk.service import jobs

FILE = Path(__file__).resolve().parents[2] / "src" / "headrace" / "config" / "databricks" / "job_grammar.json"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}

Kinds = dict[str, dict[str, str] | list[str]]


def generate() -> str:
    """Return the content of the file: for each class its keys and their kinds, for each enumeration its values.

    A kind is `any`, a scalar such as `string`, a class such as `Task`, `[Task]` for a list or `{string}` for a mapping.
    A trailing `!` marks a required key.
    """
    kinds: Kinds = {}
    classes: dict[str, type] = {}
    kind_of(jobs.JobSettings, kinds, classes)
    kind_of(jobs.JobAccessControlRequest, kinds, classes)
    # A job in databricks.yml has the key `permissions`, which JobSettings lacks.
    kinds["Permission"] = _permission(kinds.pop("JobAccessControlRequest"))
    job = kinds["JobSettings"]
    assert isinstance(job, dict)
    job["permissions"] = "[Permission]"
    entries = [f" {json.dumps(name)}: {json.dumps(kinds[name])}" for name in sorted(kinds)]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _permission(request: dict[str, str] | list[str]) -> dict[str, str]:
    """Return the keys of a permission in databricks.yml, where `permission_level` is called `level` and is required."""
    assert isinstance(request, dict)
    level = request["permission_level"].rstrip("!") + "!"
    renamed = {"level" if key == "permission_level" else key: kind for key, kind in request.items()}
    return {**renamed, "level": level}


def kind_of(hint: object, kinds: Kinds, classes: dict[str, type]) -> str:
    """Return the kind of a type hint.

    Add the classes that the hint refers to, directly or through other classes, to `kinds` and `classes`, by name.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):  # Optional[...]
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return kind_of(hint, kinds, classes)
    if origin is list:
        return f"[{kind_of(arguments[0], kinds, classes)}]"
    if origin is dict:
        return f"{{{kind_of(arguments[1], kinds, classes)}}}"
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint]
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum)):
        return _class_kind(hint, kinds, classes)
    return "any"


def _class_kind(cls: type, kinds: Kinds, classes: dict[str, type]) -> str:
    """Return the name of a class; raise ValueError if another class has the same name."""
    name = cls.__name__
    if classes.setdefault(name, cls) is not cls:
        raise ValueError(f"two classes have the name {name}")
    if name in kinds:
        return name
    if issubclass(cls, enum.Enum):
        kinds[name] = [member.value for member in cls]
        return name
    keys: dict[str, str] = {}
    kinds[name] = keys  # registered before its fields are visited, because a task may contain a task
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        keys[field.name] = kind_of(hints[field.name], kinds, classes) + ("!" if is_required else "")
    return name


if __name__ == "__main__":
    FILE.write_text(generate(), encoding="utf-8")
