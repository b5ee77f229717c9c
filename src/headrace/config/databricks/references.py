"""Resolve the references in databricks.yml that Headrace supports, such as `${var.name}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headrace.config.locations import KeyLocations, KeyPath, describe_path, fix_for_unknown_name
from headrace.errors import Problem

REFERENCE = re.compile(r"\$\{([^}]*)\}")
# These values are unknown until a deployment connects to the workspace. Until then, the references stay in the text.
WORKSPACE_REFERENCES = (
    "workspace.current_user.short_name",
    "workspace.current_user.userName",
    "workspace.file_path",
    "workspace.host",
    "workspace.root_path",
)
USER_REFERENCE_START = "${workspace.current_user."  # the start of each reference to the user who deploys the bundle
USER_REFERENCE = "${workspace.current_user.short_name}"


class Unresolved(str):
    """Text with a reference that has no value, or a placeholder for a value that is unknown because of a problem.

    The problem is reported once; all other checks skip an unresolved value.
    """


class WrittenValue(NamedTuple):
    """The value of a variable as written, and the key path of the value."""

    value: Any
    path: KeyPath


def resolve_references(value: Any, known: Mapping[str, Any]) -> Any:
    """Return the value with its references replaced by the values in `known`.

    If a reference is the whole text, the result has the type of the reference's value. Text becomes `Unresolved` if it
    has a reference that is unknown, or whose value is `Unresolved`. References to the workspace that are not in `known`
    stay in the text.
    """
    if isinstance(value, dict):
        return {key: resolve_references(inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        return [resolve_references(inner, known) for inner in value]
    if not isinstance(value, str) or isinstance(value, Unresolved):
        return value
    names = REFERENCE.findall(value)
    values = {name: known[name] for name in names if name in known}
    whole = REFERENCE.fullmatch(value)
    if whole and whole[1] in values:
        return values[whole[1]]
    text = REFERENCE.sub(lambda match: _format_value(values.get(match[1], match[0])), value)
    is_unresolved = any(_is_unknown(name, known) or isinstance(values.get(name), Unresolved) for name in names)
    return Unresolved(text) if is_unresolved else text


def check_references(value: Any, known: Mapping[str, Any], locations: KeyLocations, path: KeyPath) -> Iterator[Problem]:
    """Yield a problem for each unknown reference in the value at a key path."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from check_references(inner, known, locations, (*path, key))
    else:
        for name in references_in(value):
            if _is_unknown(name, known):
                yield _unknown_reference(name, known, locations, path)


def resolve_variables(values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of variables with their references replaced, including references to other variables.

    `values` are the values of the variables by name, `known` the values of all other references. A variable becomes
    `Unresolved` if it refers to itself, directly or through other variables, or if it refers to such a variable.
    """
    pending = {f"var.{name}": value for name, value in values.items()}
    resolved = dict(known)
    while pending:
        ready = [name for name, value in pending.items() if not pending.keys() & set(references_in(value))]
        for name in ready:
            resolved[name] = resolve_references(pending.pop(name), resolved)
        if not ready:  # each of the pending variables depends on a variable that refers to itself
            resolved.update({name: Unresolved(f"${{{name}}}") for name in pending})
            break
    return {name: resolved[f"var.{name}"] for name in values}


def check_variables(
    values: Mapping[str, WrittenValue], known: Mapping[str, Any], locations: KeyLocations
) -> Iterator[Problem]:
    """Yield the unknown references in the values of variables, and the variables that refer to themselves.

    `values` are the variables that have a value, `known` the values of all other references.
    """
    variables = {f"var.{name}": written.value for name, written in values.items()}
    references = {name: set(references_in(value)) for name, value in variables.items()}
    for name, (value, path) in values.items():
        yield from check_references(value, {**known, **variables}, locations, path)
        if f"var.{name}" in _dependencies(f"var.{name}", references):
            message = f"variable '{name}' refers to itself, directly or through other variables"
            yield Problem(locations.where(*path), message, "write its value without a reference to itself")


def references_in(value: Any) -> Iterator[str]:
    """Yield the names of all references in a value, such as `var.name`, but none from an `Unresolved` value."""
    if isinstance(value, str) and not isinstance(value, Unresolved):
        yield from REFERENCE.findall(value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from references_in(inner)


def _dependencies(name: str, references: Mapping[str, set[str]]) -> set[str]:
    """Return the names of all references that the value of a reference contains, directly or through other references.

    `references` has the names of the references that the value of each reference contains directly.
    """
    reached: set[str] = set()
    pending = [name]
    while pending:
        new = references.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def _is_unknown(name: str, known: Mapping[str, Any]) -> bool:
    """Return whether a reference is neither in `known` nor a reference to the workspace."""
    return name not in known and name not in WORKSPACE_REFERENCES


def _format_value(value: Any) -> str:
    """Return a value as text, in the form of YAML: true instead of True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown_reference(name: str, known: Mapping[str, Any], locations: KeyLocations, path: KeyPath) -> Problem:
    where, key = locations.where(*path), describe_path(path)
    if name.startswith("var."):
        variable = name.removeprefix("var.")
        declared = [other.removeprefix("var.") for other in known if other.startswith("var.")]
        fix = fix_for_unknown_name(variable, declared, "declare it under 'variables' in databricks.yml")
        return Problem(where, f"{key}: unknown variable '{variable}'", fix)
    others = [other for other in known if not other.startswith("var.")]
    fix = fix_for_unknown_name(name, [*others, *WORKSPACE_REFERENCES])
    return Problem(where, f"{key}: unknown reference '${{{name}}}'", fix)
