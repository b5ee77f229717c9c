"""Plain data -> one of the models, or the problems that keep it from being one."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.config.locations import KeyLocations, KeyPath, closest_match, closest_name, describe_path
from headrace.config.models import value_types
from headrace.errors import Problem

M = TypeVar("M", bound=BaseModel)

TYPES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must hold keys and their values",
    "model_type": "must hold keys and their values",
    "model_attributes_type": "must hold keys and their values",
}
EXAMPLES = {
    "must be text": "write text; quote it if it looks like a number",
    "must be a whole number": "write plain digits",
    "must be a number": "write plain digits",
    "must be true or false": "write true or false, without quotes",
    "must be a list": "write it in brackets: [a, b]",
    "must hold keys and their values": "write {key: value}",
}
PATTERNS = {
    "Name": ("is not a name", "use letters, digits and '_', not starting with a digit"),
    "Memory": ("is not an amount of memory", "write it like 512m or 2g"),
    "SecretName": ("does not name a secret", "write scope/key, like shop/kafka-password"),
    "ImportPath": (
        "is not an import path",
        "write module:function, like 'headrace.transforms.bronze:deduplicate'",
    ),
}


def build_model(
    model: type[M], data: Any, lines: KeyLocations, at: KeyPath, **given: Any
) -> tuple[M | None, list[Problem]]:
    """The model made of the data at a key path; `given` are fields that the file does not write.

    Beside problems that are all slips of the pen, the model is made as it was probably meant, so that whoever checks it
    against others finds what else is wrong.
    """
    if not isinstance(data, dict):
        words = f"{describe_path(at)}: " if at else ""
        message = f"{words}must hold keys and their values, not {format_value(data)}"
        return None, [Problem(lines.where(*at), message, EXAMPLES[TYPES["dict_type"]])]
    strays = [_unknown(model, at, key, lines) for key in given if key in data]
    try:
        return model.model_validate({**data, **given}), strays
    except ValidationError as error:
        found: dict[KeyPath, list[ErrorDetails]] = {}
        for detail in error.errors(include_url=False):
            found.setdefault(_path(data, detail), []).append(detail)
        slips = {path: details[0] for path, details in found.items()}
        whole = _meant(model, {**data, **given}, slips, lines, at)
        if whole is not None:  # what is missing is there, under another name
            found = {path: details for path, details in found.items() if details[0]["type"] != "missing"}
        return whole, strays + [_problem(model, lines, at, path, details) for path, details in found.items()]


def _meant(
    model: type[M], data: Any, slips: Mapping[KeyPath, ErrorDetails], lines: KeyLocations, at: KeyPath
) -> M | None:
    """The model with each unknown key or word taken for the nearest known one; none if that does not make it whole."""
    data = deepcopy(data)
    for path, detail in slips.items():
        holder = reduce(lambda inside, key: inside[key], path[:-1], data)
        if detail["type"] == "extra_forbidden":
            value = holder.pop(path[-1])
            known = closest_name(str(path[-1]), keys_of(_owner(model, detail["loc"][:-1])) - holder.keys())
            if known is not None:
                holder[known] = value
                lines.also(at + path, (*at, *path[:-1], known))
        elif detail["type"] == "literal_error" and isinstance(detail["input"], str):
            holder[path[-1]] = closest_name(detail["input"], _choices(detail, "expected"))
        elif detail["type"] == "union_tag_invalid":
            holder[path[-1]]["kind"] = closest_name(detail["ctx"]["tag"], _choices(detail, "expected_tags"))
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def _choices(detail: ErrorDetails, said_as: str) -> list[str]:
    return [choice.strip(" '") for choice in detail["ctx"][said_as].replace(" or ", ", ").split(", ")]


def _path(data: Any, detail: ErrorDetails) -> KeyPath:
    """Pydantic's place without the names of union members that it mixes in."""
    path: list[str | int] = []
    parts = detail["loc"]
    for at, part in enumerate(parts):
        there = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        if there:
            data = data[part]
        if there or (detail["type"] == "missing" and at == len(parts) - 1):
            path.append(part)
    return tuple(path)


def _problem(
    model: type[BaseModel], lines: KeyLocations, at: KeyPath, path: KeyPath, details: list[ErrorDetails]
) -> Problem:
    detail = details[0]
    kind, where = detail["type"], lines.where(*at, *path)
    if kind == "extra_forbidden":
        return _unknown(_owner(model, detail["loc"][:-1]), at + path[:-1], str(path[-1]), lines)
    if kind == "missing" and isinstance(path[-1], str):
        around = describe_path(at + path[:-1])
        words = f"{around}: " if around else ""
        return Problem(where, f"{words}'{path[-1]}' is missing", f"add '{path[-1]}:' here")
    words = describe_path(at + path) if kind != "missing" else describe_path(at + path[:-1])
    message, fix = _said(detail) if len(details) == 1 else _either(details)
    return Problem(where, f"{words}: {message}" if words else message, fix)


def _either(details: list[ErrorDetails]) -> tuple[str, str]:
    """One sentence for a value that is none of a union's simple types."""
    if len(details) > 2:  # a setting may be anything but a list or keys
        return f"must be a single value, not {format_value(details[0]['input'])}", "write text, a number, true or false"
    kinds = [TYPES.get(detail["type"], "").removeprefix("must be ") for detail in details]
    value = format_value(details[0]["input"])
    return f"must be {' or '.join(kind for kind in kinds if kind)}, not {value}", "write a single value"


def _said(detail: ErrorDetails) -> tuple[str, str]:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in TYPES:
        return f"{TYPES[kind]}, not {format_value(value)}", EXAMPLES[TYPES[kind]]
    if kind in ("missing", "too_long", "too_short"):
        return "must be a pair", "write the lowest and the highest value: [low, high]"
    if kind == "literal_error":
        choices = _choices(detail, "expected")
        if not isinstance(value, str):
            fix = f"write {choices[0].lower()}" if len(choices) == 1 else f"known here: {', '.join(choices)}"
            return f"unknown word {format_value(value)}", fix
        return f"unknown word {format_value(value)}", closest_match(value, choices)
    if kind == "union_tag_invalid":
        choices = _choices(detail, "expected_tags")
        return f"unknown kind '{context['tag']}'", closest_match(str(context["tag"]), choices)
    if kind == "union_tag_not_found":
        return "'kind' is missing", "add 'kind:' here"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}, not {format_value(value)}", "write a larger number"
    if kind == "string_pattern_mismatch":
        return _pattern(str(context["pattern"]), value)
    if kind == "value_error":
        message, _, fix = str(context["error"]).partition("; ")
        return message, fix or "write it in another way"
    return detail["msg"].lower(), "change the value"


def _pattern(pattern: str, value: Any) -> tuple[str, str]:
    for name, said in PATTERNS.items():
        if any(getattr(part, "pattern", None) == pattern for part in get_args(getattr(value_types, name))):
            return f"{format_value(value)} {said[0]}", said[1]
    return f"{format_value(value)} is not of the form {pattern}", "write it in that form"


def _unknown(owner: type[BaseModel] | None, at: KeyPath, key: str, lines: KeyLocations) -> Problem:
    words = f"{describe_path(at)}: " if at else ""
    return Problem(lines.where(*at, key), f"{words}unknown key '{key}'", closest_match(key, keys_of(owner)))


def keys_of(owner: type[BaseModel] | None) -> set[str]:
    """The keys that a file may write into a model."""
    return {field.alias or name for name, field in owner.model_fields.items()} - {"name"} if owner else set()


def format_value(value: Any) -> str:
    """A value as a message shows it: short, and in YAML's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "keys and values"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…'"


def _owner(model: type[BaseModel], place: KeyPath) -> type[BaseModel] | None:
    """The model in which a place stands, so that its keys can be suggested."""
    kinds: list[Any] = [model]
    for part in place:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)] or kinds
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _inside(kind: Any, part: str | int) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if part == (field.alias or name):
                return _members(field.annotation)
            if name == "kind" and part in get_args(field.annotation):
                return [kind]
        return []
    inner = get_args(kind)
    if get_origin(kind) is dict:
        return _members(inner[1])
    return _members(inner[0]) if get_origin(kind) is tuple else []


def _members(kind: Any) -> list[Any]:
    """The types that an annotation allows, with Annotated and unions taken apart."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [member for part in get_args(kind) for member in _members(part)]
    return [kind]
