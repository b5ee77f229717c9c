"""`${name}` in an environment file -> the value: declared in the file, or given with the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.config.locations import KeyLocations, KeyPath, closest_match, describe_path
from headrace.errors import Problem

REFERENCE = re.compile(r"\$\{([^}]*)\}?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Values:
    """What an environment declares and a run gives; lenient: a required value's name stands in for it."""

    locations: KeyLocations
    declared: Mapping[str, Any]
    given: Mapping[str, str]
    lenient: bool = False
    problems: list[Problem] = field(default_factory=list)

    def into(self, data: Any, *path: str | int) -> Any:
        """The data with each `${name}` replaced."""
        if isinstance(data, dict):
            return {key: self.into(value, *path, key) for key, value in data.items()}
        if isinstance(data, list):
            return [self.into(value, *path, at) for at, value in enumerate(data)]
        if not isinstance(data, str) or "${" not in data:
            return data
        whole = REFERENCE.fullmatch(data)
        if whole and data.endswith("}") and NAME.match(whole[1]):
            return self._value(whole[1], path)  # a value alone keeps its type
        return REFERENCE.sub(lambda found: str(self._value(found[1], path, found[0])), data)

    def _value(self, name: str, path: KeyPath, written: str = "") -> str | int:
        if not NAME.match(name) or (written and not written.endswith("}")):
            fix = "write ${name}, with letters, digits and '_' only: no defaults, no nesting"
            self._problem(path, f"'{written or name}' is not of the form ${{name}}", fix)
            return ""
        if name not in self.declared:
            fix = closest_match(name, self.declared, f"declare it: values: {{{name}: …}}")
            self._problem(path, f"'${{{name}}}' is not declared under values", fix)
            return name
        value = self.declared[name]
        if name in self.given:
            return (
                int(self.given[name]) if isinstance(value, int) and self.given[name].isdecimal() else self.given[name]
            )
        return value if isinstance(value, str | int) else name  # a missing one is told once, by `required`

    def required(self) -> list[str]:
        """The names of the values that each run has to give."""
        return [
            name for name, value in self.declared.items() if isinstance(value, dict) and value.get("required") is True
        ]

    def check(self) -> None:
        """Tell of required values that are not given, and of given values that nobody asked for."""
        for name in self.required():
            if name not in self.given and not self.lenient:
                self._problem(("values", name), f"the value '{name}' is required", f"give it: --value {name}=…")
        for name, declared in self.declared.items():
            if references(declared):
                message = f"the value '{name}' holds {declared!r}, which nothing is put into"
                self._problem(("values", name), message, "write it where the value is used: no nesting")
        for name, value in self.given.items():
            if name not in self.declared:
                if self.lenient:
                    continue  # another environment may declare it
                fix = closest_match(name, self.declared, "leave it out, or declare it under values")
                self.problems.append(Problem(self.locations.file, f"the value '{name}' is given but not declared", fix))
            elif type(self.declared[name]) is int and not value.isdecimal():
                message = f"the value '{name}' must be a whole number, not {value!r}"
                self._problem(("values", name), message, "give digits only")

    def _problem(self, path: KeyPath, message: str, fix: str) -> None:
        words = "" if path[:1] == ("values",) else f"{describe_path(path)}: "
        self.problems.append(Problem(self.locations.where(*path), f"{words}{message}", fix))


def references(data: Any) -> set[str]:
    """The names of all `${name}` in the data."""
    if isinstance(data, dict):
        return {name for value in data.values() for name in references(value)}
    if isinstance(data, list):
        return {name for value in data for name in references(value)}
    return set(REFERENCE.findall(data)) if isinstance(data, str) else set()
