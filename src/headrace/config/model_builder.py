"""Validate plain data as one of the models, or describe why it is not valid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import reduce
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.config import value_types
from headrace.config.locations import KeyLocations, KeyPath, closest_match, closest_name, describe_path
from headrace.config.model_keys import keys_of, owner_at
from headrace.errors import Problem

M = TypeVar("M", bound=BaseModel)

TYPES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
EXAMPLES = {
    "must be text": "write text; quote it if it looks like a number",
    "must be a whole number": "write plain digits",
    "must be a number": "write plain digits",
    "must be true or false": "write true or false, without quotes",
    "must be a list": "write it in brackets: [a, b]",
    "must be a mapping": "write {key: value}",
}
PATTERNS = {
    "Name": ("is not a valid name", "use letters, digits and '_', not starting with a digit"),
    "Memory": ("is not a valid memory size", "write it like 512m or 2g"),
    "SecretName": ("is not a valid secret name", "write scope/key, like shop/kafka-password"),
    "ImportPath": (
        "is not an import path",
        "write module:function, like 'headrace.transforms.bronze:deduplicate'",
    ),
}


def build_model(
    model: type[M],
    data: Any,
    locations: KeyLocations,
    path: KeyPath,
    *,
    invalid: Collection[KeyPath] = (),
    **fields: Any,
) -> tuple[M | None, list[Problem]]:
    """Return the model of the data at a key path, or None, and the problems of the data.

    `fields` are fields of the model that the file does not contain. `invalid` are key paths with a problem that is
    already known: what only follows from it is not reported.

    If misspelled keys and values are the only problems, the model is built as it was probably intended, so that
    checks against other files can report their problems too.
    """
    if not isinstance(data, dict):
        if path in invalid:
            return None, []
        subject = f"{describe_path(path)}: " if path else ""
        message = f"{subject}{TYPES['dict_type']}, not {format_value(data)}"
        return None, [Problem(locations.where(*path), message, EXAMPLES[TYPES["dict_type"]])]
    problems = [_unknown_key(model, path, key, locations) for key in fields if key in data]
    try:
        return model.model_validate({**data, **fields}), problems
    except ValidationError as error:
        errors: dict[KeyPath, list[ErrorDetails]] = {}
        for details in error.errors(include_url=False):
            errors.setdefault(_path_in_data(data, details), []).append(details)
        first_errors = {key: details[0] for key, details in errors.items()}
        corrected, renamed = _correct_spelling(model, {**data, **fields}, first_errors)
        for key, intended in renamed.items():
            locations.add_alias(path + key, path + intended)
        for key, key_errors in errors.items():
            is_missing = key_errors[0]["type"] == "missing" and isinstance(key[-1], str)
            if path + (key[:-1] if is_missing else key) in invalid or (is_missing and key in renamed.values()):
                continue
            problems.append(_problem(model, locations, path, key, key_errors))
        return _validate_or_none(model, corrected), problems


def _validate_or_none(model: type[M], data: Any) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def _correct_spelling(
    model: type[M], data: Any, errors: Mapping[KeyPath, ErrorDetails]
) -> tuple[Any, dict[KeyPath, KeyPath]]:
    """Replace each unknown key and value by the most similar known one.

    Return the data, and the path of each misspelled key with the path that was probably intended.
    """
    data = deepcopy(data)
    renamed: dict[KeyPath, KeyPath] = {}
    for path, details in errors.items():
        parent = reduce(lambda value, key: value[key], path[:-1], data)
        if details["type"] == "extra_forbidden":
            value = parent.pop(path[-1])
            known = closest_name(str(path[-1]), keys_of(owner_at(model, details["loc"][:-1])) - parent.keys())
            if known is not None:
                parent[known] = value
                renamed[path] = (*path[:-1], known)
        elif details["type"] == "literal_error" and isinstance(details["input"], str):
            parent[path[-1]] = closest_name(details["input"], _choices(details, "expected"))
        elif details["type"] == "union_tag_invalid":
            parent[path[-1]]["kind"] = closest_name(details["ctx"]["tag"], _choices(details, "expected_tags"))
    return data, renamed


def _choices(details: ErrorDetails, context_key: str) -> list[str]:
    return [choice.strip(" '") for choice in details["ctx"][context_key].replace(" or ", ", ").split(", ")]


def _path_in_data(data: Any, details: ErrorDetails) -> KeyPath:
    """Return Pydantic's location without the names of union members, which are not keys of the data."""
    path: list[str | int] = []
    parts = details["loc"]
    for index, part in enumerate(parts):
        exists = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        if exists:
            data = data[part]
        if exists or (details["type"] == "missing" and index == len(parts) - 1):
            path.append(part)
    return tuple(path)


def _problem(
    model: type[BaseModel], locations: KeyLocations, parent: KeyPath, path: KeyPath, errors: list[ErrorDetails]
) -> Problem:
    """Return the problem of one value: several errors mean that it is no member of a union."""
    details = errors[0]
    kind, where = details["type"], locations.where(*parent, *path)
    if kind == "extra_forbidden":
        return _unknown_key(owner_at(model, details["loc"][:-1]), parent + path[:-1], str(path[-1]), locations)
    if kind == "missing" and isinstance(path[-1], str):
        subject = f"{describe_path(parent + path[:-1])}: " if parent + path[:-1] else ""
        return Problem(where, f"{subject}'{path[-1]}' is missing", f"add '{path[-1]}:' here")
    subject = describe_path(parent + path) if kind != "missing" else describe_path(parent + path[:-1])
    message, fix = _describe_error(details) if len(errors) == 1 else _describe_union_errors(errors)
    return Problem(where, f"{subject}: {message}" if subject else message, fix)


def _describe_union_errors(errors: list[ErrorDetails]) -> tuple[str, str]:
    """Return the message and the fix for a value that is none of a union's simple types."""
    value = format_value(errors[0]["input"])
    if len(errors) > 2:  # a setting may be any scalar
        return f"must be a single value, not {value}", "write text, a number, true or false"
    kinds = [TYPES.get(details["type"], "").removeprefix("must be ") for details in errors]
    return f"must be {' or '.join(kind for kind in kinds if kind)}, not {value}", "write a single value"


def _describe_error(details: ErrorDetails) -> tuple[str, str]:
    """Return the message and the fix for one error of Pydantic."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind in TYPES:
        return f"{TYPES[kind]}, not {format_value(value)}", EXAMPLES[TYPES[kind]]
    if kind in ("missing", "too_long", "too_short"):
        return "must be a pair", "write the lowest and the highest value: [low, high]"
    if kind == "literal_error":
        choices = _choices(details, "expected")
        if not isinstance(value, str):
            fix = f"write {choices[0].lower()}" if len(choices) == 1 else f"use one of: {', '.join(choices)}"
            return f"unknown value: {format_value(value)}", fix
        return f"unknown value {format_value(value)}", closest_match(value, choices)
    if kind == "union_tag_invalid":
        choices = _choices(details, "expected_tags")
        return f"unknown kind '{context['tag']}'", closest_match(str(context["tag"]), choices)
    if kind == "union_tag_not_found":
        return "'kind' is missing", "add 'kind:' here"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}, not {format_value(value)}", "write a larger number"
    if kind == "string_pattern_mismatch":
        return _describe_pattern(str(context["pattern"]), value)
    if kind == "value_error":
        message, _, fix = str(context["error"]).partition("; ")
        return message, fix or "change the value"
    return details["msg"].lower(), "change the value"


def _describe_pattern(pattern: str, value: Any) -> tuple[str, str]:
    for name, (message, fix) in PATTERNS.items():
        if any(getattr(part, "pattern", None) == pattern for part in get_args(getattr(value_types, name))):
            return f"{format_value(value)} {message}", fix
    return f"{format_value(value)} does not match the pattern {pattern}", "change the value so that it matches"


def _unknown_key(owner: type[BaseModel] | None, parent: KeyPath, key: str, locations: KeyLocations) -> Problem:
    subject = f"{describe_path(parent)}: " if parent else ""
    return Problem(locations.where(*parent, key), f"{subject}unknown key '{key}'", closest_match(key, keys_of(owner)))


def format_value(value: Any) -> str:
    """Return a value as messages show it: short, and in YAML's terms."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…'"
