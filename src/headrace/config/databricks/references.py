"""`${var.name}` and its kin in databricks.yml: Databricks' own grammar, the part of it that is carried out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.locations import KeyLocations, KeyPath, closest_match, describe_path
from headrace.errors import Problem

REFERENCE = re.compile(r"\$\{([^}]*)\}")
# What only the workspace knows: left as it is until there is one.
LATE = (
    "workspace.current_user.short_name",
    "workspace.current_user.userName",
    "workspace.file_path",
    "workspace.host",
    "workspace.root_path",
)


class Unresolved(str):
    """Text with a reference that stands for nothing: told once, and not judged any further."""


def put_in(value: Any, known: Mapping[str, Any], lines: KeyLocations, at: KeyPath, problems: list[Problem]) -> Any:
    """The value with its references replaced; one that is the whole text keeps the type of what it stands for."""
    if isinstance(value, dict):
        return {key: put_in(inner, known, lines, (*at, key), problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [put_in(inner, known, lines, (*at, number), problems) for number, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    found = {name: known[name] for name in REFERENCE.findall(value) if name in known}
    strange = [name for name in REFERENCE.findall(value) if name not in known and name not in LATE]
    problems += [_unknown(name, known, lines, at) for name in strange]
    whole = REFERENCE.fullmatch(value)
    if whole and whole[1] in found:
        return found[whole[1]]
    text = REFERENCE.sub(lambda match: _text(found.get(match[1], match[0])), value)
    return Unresolved(text) if strange or any(isinstance(one, Unresolved) for one in found.values()) else text


def variables_of(
    written: Mapping[str, tuple[Any, KeyPath]], known: Mapping[str, Any], lines: KeyLocations, problems: list[Problem]
) -> dict[str, Any]:
    """Each variable's value, with the references in it replaced; it is given with the place where it stands."""
    waiting = {f"var.{name}": found for name, found in written.items()}
    done = dict(known)
    while waiting:
        ready = [name for name, (value, _) in waiting.items() if not waiting.keys() & set(references_in(value))]
        for name in ready:
            value, at = waiting.pop(name)
            done[name] = put_in(value, done, lines, at, problems)
        if not ready:
            for name, (_, at) in waiting.items():
                message = f"variable '{name.removeprefix('var.')}' stands for itself, by way of other variables or not"
                problems.append(Problem(lines.where(*at), message, "write its value out"))
            done.update({name: Unresolved(f"${{{name}}}") for name in waiting})
            break
    return {name: done[f"var.{name}"] for name in written}


def references_in(value: Any) -> Iterator[str]:
    """The names of all references in a value."""
    if isinstance(value, str):
        yield from REFERENCE.findall(value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from references_in(inner)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown(name: str, known: Mapping[str, Any], lines: KeyLocations, at: KeyPath) -> Problem:
    where, words = lines.where(*at), describe_path(at)
    if name.startswith("var."):
        variable = name.removeprefix("var.")
        declared = [one.removeprefix("var.") for one in known if one.startswith("var.")]
        fix = closest_match(variable, declared, "declare it under 'variables' in databricks.yml")
        return Problem(where, f"{words}: unknown variable '{variable}'", fix)
    fix = closest_match(name, [*(one for one in known if not one.startswith("var.")), *LATE])
    return Problem(where, f"{words}: '${{{name}}}' stands for nothing that is known here", fix)
