"""Validate plain data as one of the models, or describe why it is not valid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.config import value_types
from headrace.config.locations import KeyLocations, KeyPath, closest_name, describe_path, fix_for_unknown_name
from headrace.config.model_keys import keys_of, model_at
from headrace.errors import Problem

M = TypeVar("M", bound=BaseModel)

# The message for each of Pydantic's type errors, and the fix for each message.
TYPE_MESSAGES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
TYPE_FIXES = {
    "must be text": "write text; quote it if it looks like a number",
    "must be a whole number": "write plain digits",
    "must be a number": "write plain digits",
    "must be true or false": "write true or false, without quotes",
    "must be a list": "write it in brackets: [a, b]",
    "must be a mapping": "write {key: value}",
}
# The message and the fix for each type in value_types that has a pattern.
PATTERN_MESSAGES = {
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
    """Return the model of the data at a key path of a file, or None if the data is invalid, and the data's problems.

    `fields` are the values of fields that do not come from the file; it is a problem if the file contains such a key.
    `invalid` are key paths whose problems have been reported already; no further problems at these paths are reported.

    If all problems are unknown keys and misspelled values, also return a model: with the spelling corrected, and
    without keys that resemble no known key. The other checks need the model to report their problems at the same time.
    Add the locations of the corrected keys to `locations`.
    """
    if not isinstance(data, dict):
        if path in invalid:
            return None, []
        subject = f"{describe_path(path)}: " if path else ""
        message = f"{subject}{TYPE_MESSAGES['dict_type']}, not {format_value(data)}"
        return None, [Problem(locations.where(*path), message, TYPE_FIXES[TYPE_MESSAGES["dict_type"]])]
    problems = [_unknown_key(model, path, key, locations) for key in fields if key in data]
    try:
        return model.model_validate({**data, **fields}), problems
    except ValidationError as error:
        errors: dict[KeyPath, list[ErrorDetails]] = {}  # several for one value if it matches no type of a union
        for details in error.errors(include_url=False):
            errors.setdefault(_path_in_data(data, details), []).append(details)
        first_errors = {key_path: details[0] for key_path, details in errors.items()}
        corrected, renamed = _correct_spelling(model, {**data, **fields}, first_errors)
        for misspelled, intended in renamed.items():
            locations.add_alias(path + misspelled, path + intended)
        for key_path, value_errors in errors.items():
            # If an item of a tuple is missing, the last part of the path is an index.
            is_missing = value_errors[0]["type"] == "missing" and isinstance(key_path[-1], str)
            existing_path = key_path[:-1] if is_missing else key_path
            is_misspelled = is_missing and key_path in renamed.values()
            if path + existing_path not in invalid and not is_misspelled:
                problems.append(_problem(model, locations, path, key_path, value_errors))
        return _validate_or_none(model, corrected), problems


def _validate_or_none(model: type[M], data: Any) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def _correct_spelling(
    model: type[M], data: Any, errors: Mapping[KeyPath, ErrorDetails]
) -> tuple[Any, dict[KeyPath, KeyPath]]:
    """Return the data with each unknown key and each unknown value replaced by the most similar known one.

    If none is similar, remove an unknown key, and replace an unknown value with None. Also return the key path of each
    replaced key, mapped to the key path that was probably intended.
    """
    data = deepcopy(data)
    renamed: dict[KeyPath, KeyPath] = {}
    for path, details in errors.items():
        parent = data
        for key in path[:-1]:
            parent = parent[key]
        if details["type"] == "extra_forbidden":
            value = parent.pop(path[-1])
            unused_keys = keys_of(model_at(model, details["loc"][:-1])) - parent.keys()
            intended = closest_name(str(path[-1]), unused_keys)
            if intended is not None:
                parent[intended] = value
                renamed[path] = (*path[:-1], intended)
        elif details["type"] == "literal_error" and isinstance(details["input"], str):
            parent[path[-1]] = closest_name(details["input"], _choices(details, "expected"))
        elif details["type"] == "union_tag_invalid":
            parent[path[-1]]["kind"] = closest_name(details["ctx"]["tag"], _choices(details, "expected_tags"))
    return data, renamed


def _choices(details: ErrorDetails, context_key: str) -> list[str]:
    """Return the allowed values that an error lists. Pydantic gives them as text: "'a', 'b' or 'c'"."""
    return [choice.strip(" '") for choice in details["ctx"][context_key].replace(" or ", ", ").split(", ")]


def _path_in_data(data: Any, details: ErrorDetails) -> KeyPath:
    """Return the key path of an error in the data: Pydantic's location without the names of union members.

    The last part of the path may be a missing key; all other parts exist in the data.
    """
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
    """Return the problem of one value. If there are several errors, the value matches no type of a union.

    `parent` is the key path of the model in the file, and `path` the key path of the value, or of a missing key, in the
    model.
    """
    details = errors[0]
    error_type, where = details["type"], locations.where(*parent, *path)
    if error_type == "extra_forbidden":
        return _unknown_key(model_at(model, details["loc"][:-1]), parent + path[:-1], str(path[-1]), locations)
    if error_type == "missing" and isinstance(path[-1], str):
        subject = f"{describe_path(parent + path[:-1])}: " if parent + path[:-1] else ""
        return Problem(where, f"{subject}'{path[-1]}' is missing", f"add '{path[-1]}:' here")
    subject = describe_path(parent + (path[:-1] if error_type == "missing" else path))
    message, fix = _describe_error(details) if len(errors) == 1 else _describe_union_errors(errors)
    return Problem(where, f"{subject}: {message}" if subject else message, fix)


def _describe_union_errors(errors: list[ErrorDetails]) -> tuple[str, str]:
    """Return the message and the fix for a value that matches none of a union's scalar types."""
    value = format_value(errors[0]["input"])
    if len(errors) > 2:  # only the type Setting has more than two members: it allows all scalars
        return f"must be a single value, not {value}", "write text, a number, true or false"
    types = [TYPE_MESSAGES.get(details["type"], "").removeprefix("must be ") for details in errors]
    return f"must be {' or '.join(name for name in types if name)}, not {value}", "write a single value"


def _describe_error(details: ErrorDetails) -> tuple[str, str]:
    """Return the message and the fix for one error of Pydantic."""
    error_type, value, context = details["type"], details["input"], details.get("ctx", {})
    if error_type in TYPE_MESSAGES:
        message = TYPE_MESSAGES[error_type]
        return f"{message}, not {format_value(value)}", TYPE_FIXES[message]
    if error_type in ("missing", "too_long", "too_short"):  # of the limits of `between`
        return "must be a pair", "write the lowest and the highest value: [low, high]"
    if error_type == "literal_error":
        choices = _choices(details, "expected")
        if not isinstance(value, str):
            # A literal with one choice is a boolean: `required: true`.
            fix = f"write {choices[0].lower()}" if len(choices) == 1 else f"use one of: {', '.join(choices)}"
            return f"unknown value: {format_value(value)}", fix
        return f"unknown value {format_value(value)}", fix_for_unknown_name(value, choices)
    if error_type == "union_tag_invalid":
        choices = _choices(details, "expected_tags")
        return f"unknown kind '{context['tag']}'", fix_for_unknown_name(str(context["tag"]), choices)
    if error_type == "union_tag_not_found":
        return "'kind' is missing", "add 'kind:' here"
    if error_type == "greater_than_equal":
        return f"must be at least {context['ge']}, not {format_value(value)}", "write a larger number"
    if error_type == "string_pattern_mismatch":
        return _describe_pattern(str(context["pattern"]), value)
    if error_type == "value_error":
        message, _, fix = str(context["error"]).partition("; ")  # the validators in value_types write "message; fix"
        return message, fix or "change the value"
    return details["msg"].lower(), "change the value"


def _describe_pattern(pattern: str, value: Any) -> tuple[str, str]:
    """Return the message and the fix for a value that does not match the pattern of its type."""
    for type_name, (message, fix) in PATTERN_MESSAGES.items():
        constraints = get_args(getattr(value_types, type_name))
        if any(getattr(constraint, "pattern", None) == pattern for constraint in constraints):
            return f"{format_value(value)} {message}", fix
    return f"{format_value(value)} does not match the pattern {pattern}", "change the value so that it matches"


def _unknown_key(model: type[BaseModel] | None, parent: KeyPath, key: str, locations: KeyLocations) -> Problem:
    subject = f"{describe_path(parent)}: " if parent else ""
    return Problem(
        locations.where(*parent, key), f"{subject}unknown key '{key}'", fix_for_unknown_name(key, keys_of(model))
    )


def format_value(value: Any) -> str:
    """Return a value as text for a message: at most 60 characters, in the terms of YAML."""
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
