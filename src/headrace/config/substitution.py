"""Replace `${name}` in an environment file with a value that the file declares or that --value gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.config.locations import KeyLocations, KeyPath, describe_path, fix_for_unknown_name
from headrace.errors import Problem

REFERENCE = re.compile(r"\$\{([^}]*)\}?")  # the closing brace is optional, so that a missing brace can be reported
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass
class Substitution:
    """The data with references replaced, and the problems of the references that cannot be replaced."""

    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    unresolved: set[KeyPath] = field(default_factory=set)  # key paths of text with such a reference


@dataclass(frozen=True)
class Values:
    """The values that an environment declares (`declared`), and those given with --value (`given`).

    If `lenient`, required values may be missing: a reference to such a value is replaced with the value's name. Given
    values may be undeclared, because another environment may declare them.
    """

    locations: KeyLocations
    declared: Mapping[str, Any]
    given: Mapping[str, str]
    lenient: bool = False

    def substitute(self, data: Mapping[str, Any]) -> Substitution:
        """Return the data of a file with each `${name}` replaced, except under `values`, and the problems."""
        result = Substitution()
        result.data = {
            key: part if key == "values" else self._replace(part, (key,), result) for key, part in data.items()
        }
        return result

    def _replace(self, data: Any, path: KeyPath, result: Substitution) -> Any:
        """Return the data at a key path with each `${name}` replaced. Add problems to `result`."""
        if isinstance(data, dict):
            return {key: self._replace(value, (*path, key), result) for key, value in data.items()}
        if isinstance(data, list):
            return [self._replace(value, (*path, index), result) for index, value in enumerate(data)]
        if not isinstance(data, str) or "${" not in data:
            return data
        reference = REFERENCE.fullmatch(data)
        if reference and data.endswith("}") and NAME.match(reference[1]):
            return self._value_of(reference, path, result)  # the reference is the whole text: keep the value's type
        return REFERENCE.sub(lambda match: str(self._value_of(match, path, result)), data)

    def _value_of(self, reference: re.Match[str], path: KeyPath, result: Substitution) -> str | int:
        """Return the value that replaces a reference at a key path.

        If the reference cannot be replaced, add the key path and the problem to `result` and return a placeholder.
        """
        text, name = reference[0], reference[1]
        if not NAME.match(name) or not text.endswith("}"):
            fix = "write ${name}, with letters, digits and '_' only; defaults and nesting are not supported"
            message = f"'{text}' is not of the form ${{name}}"
            result.problems.append(self._problem(path, message, fix))
            result.unresolved.add(path)
            return ""
        if name not in self.declared:
            fix = fix_for_unknown_name(name, self.declared, f"declare it: values: {{{name}: …}}")
            result.problems.append(self._problem(path, f"'${{{name}}}' is not declared under values", fix))
            result.unresolved.add(path)
            return name
        default = self.declared[name]
        if name in self.given:
            if type(default) is not int:
                return self.given[name]
            # If the given value is not a number, `problems` reports it.
            return int(self.given[name]) if self.given[name].isdecimal() else default
        if isinstance(default, str | int):
            return default
        if not (self.lenient and name in self.required()):
            result.unresolved.add(path)  # the value is missing or invalid; the problem is reported at its declaration
        return name

    def required(self) -> list[str]:
        """Return the names of the values that each run must give with --value."""
        return [
            name for name, value in self.declared.items() if isinstance(value, dict) and value.get("required") is True
        ]

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of declarations that contain references, and of given values.

        A value is a problem if it is required but not given, given but not declared (neither if `lenient`), or not a
        number although its default is one.
        """
        for name in self.required():
            if name not in self.given and not self.lenient:
                yield self._problem(("values", name), f"value '{name}' is required", f"give it: --value {name}=…")
        for name, declared in self.declared.items():
            if references(declared):
                message = f"value '{name}' contains a reference: {declared!r}; references are not replaced in values"
                yield self._problem(("values", name), message, "write the reference where the value is used")
        for name, value in self.given.items():
            if name not in self.declared:
                if self.lenient:
                    continue
                fix = fix_for_unknown_name(name, self.declared, "omit it, or declare it under values")
                yield Problem(self.locations.file, f"value '{name}' is given but not declared", fix)
            elif type(self.declared[name]) is int and not value.isdecimal():
                message = f"value '{name}' must be a whole number, not {value!r}"
                yield self._problem(("values", name), message, "give digits only")

    def _problem(self, path: KeyPath, message: str, fix: str) -> Problem:
        subject = "" if path[:1] == ("values",) else f"{describe_path(path)}: "
        return Problem(self.locations.where(*path), f"{subject}{message}", fix)


def references(data: Any) -> set[str]:
    """Return the names in all references `${name}` in the data, even if they are not valid names."""
    if isinstance(data, dict):
        return {name for value in data.values() for name in references(value)}
    if isinstance(data, list):
        return {name for value in data for name in references(value)}
    return set(REFERENCE.findall(data)) if isinstance(data, str) else set()
