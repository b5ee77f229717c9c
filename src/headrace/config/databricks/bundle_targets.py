"""Resolve the targets of databricks.yml and their variables, and report their problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.config.databricks.bundle_grammar import BUNDLE_GRAMMAR, FILE, SHARED
from headrace.config.databricks.job_definitions import Job, Target, format_targets, known_references
from headrace.config.databricks.job_grammar import intended_keys
from headrace.config.databricks.references import (
    Unresolved,
    WrittenValue,
    check_references,
    check_variables,
    references_in,
    resolve_references,
    resolve_variables,
)
from headrace.config.locations import KeyLocations, KeyPath, fix_for_unknown_name
from headrace.errors import Problem

MODES = BUNDLE_GRAMMAR.kinds["mode"]
DEFINITION_KEYS = {*BUNDLE_GRAMMAR.kinds["variable"], *BUNDLE_GRAMMAR.unsupported["variable"]}


@dataclass(frozen=True)
class BundleFile:
    """The content of databricks.yml, the locations of its keys, the name of the bundle, and its jobs."""

    bundle: str
    content: Mapping[str, Any]
    locations: KeyLocations
    jobs: Mapping[str, Job]

    def section(self, *path: str) -> dict[str, Any]:
        """Return the mapping at a key path; an empty mapping if the value is missing or not a mapping."""
        section: Any = self.content
        for key in path:
            section = section.get(key) if isinstance(section, Mapping) else None
        return section if isinstance(section, dict) else {}

    def is_valid(self, key: str) -> bool:
        """Return whether a section is a mapping or absent.

        Return False if the section is malformed or its key is misspelled. These problems are reported elsewhere.
        """
        if key in self.content:
            return isinstance(self.content[key], dict)
        return key not in intended_keys(self.content, BUNDLE_GRAMMAR.kinds[FILE])

    def variables(self) -> dict[str, Any]:
        """Return the declarations of variables by name.

        If the section is invalid, treat every variable in use as declared, so that only the section is reported.
        """
        if self.is_valid("variables"):
            return self.section("variables")
        used = [name for target in self.section("targets") for name in self.section("targets", target, "variables")]
        references = references_in([self.content, *(job.body for job in self.jobs.values())])
        used += [name.removeprefix("var.") for name in references if name.startswith("var.")]
        return {name: {"default": Unresolved(f"${{var.{name}}}")} for name in used}


def resolve_target(file: BundleFile, name: str) -> Target:
    """Return one target with its references resolved and the top-level settings merged in."""
    variables = _resolve_variables(file, name)
    known = known_references(file.bundle, name, variables)
    section = file.section("targets", name)
    top_level = {key: resolve_references(file.content.get(key), known) for key in SHARED}
    own = {key: resolve_references(section.get(key), known) for key in SHARED}
    workspace = {**_mapping(top_level["workspace"]), **_mapping(own["workspace"])}
    mode = section.get("mode")
    return Target(
        name=name,
        mode=mode if mode in MODES else None,
        default=section.get("default") is True,
        host=_text(workspace, "host"),
        root_path=_text(workspace, "root_path"),
        profile=_text(workspace, "profile"),
        run_as=own["run_as"] if isinstance(own["run_as"], dict) else _mapping(top_level["run_as"]),
        permissions=(*_mappings(top_level["permissions"]), *_mappings(own["permissions"])),
        variables=variables,
    )


def check_targets_and_variables(file: BundleFile) -> Iterator[Problem]:
    """Yield the problems of variables, and the unknown references in targets."""
    yield from _check_definitions(file)
    yield from _check_missing_values(file)
    for name, section in file.section("targets").items():
        other_references = known_references(file.bundle, name, _variables_without_value(file, name))
        yield from check_variables(_variable_values(file, name), other_references, file.locations)
        known = known_references(file.bundle, name, _resolve_variables(file, name))
        for key in SHARED:
            yield from check_references(file.content.get(key), known, file.locations, (key,))
            own = _mapping(section).get(key)
            yield from check_references(own, known, file.locations, ("targets", name, key))


def _check_definitions(file: BundleFile) -> Iterator[Problem]:
    """Yield the malformed definitions of variables, and the undeclared variables that a target sets."""
    declared = file.variables()
    written: list[tuple[KeyPath, Any]] = [(("variables", name), raw) for name, raw in file.section("variables").items()]
    for target in file.section("targets"):
        for name, raw in file.section("targets", target, "variables").items():
            path = ("targets", target, "variables", name)
            if name in declared:
                written.append((path, raw))
            else:
                message = f"target '{target}' sets the undeclared variable '{name}'"
                fix = fix_for_unknown_name(name, declared, f"declare it at the top level: variables: {{{name}: {{}}}}")
                yield Problem(file.locations.where(*path), message, fix)
    for written_path, raw in written:
        if isinstance(raw, dict) and _is_definition(raw, written_path):
            yield from BUNDLE_GRAMMAR.check(raw, "variable", file.locations, written_path)


def _check_missing_values(file: BundleFile) -> Iterator[Problem]:
    values = {target: _variable_values(file, target) for target in file.section("targets")}
    for name in file.variables():
        targets = [target for target in values if name not in values[target]]
        if targets:
            suffix = "" if len(targets) == len(values) else f" ({format_targets(targets)})"
            fix = f"add default: …, or set it in the target: targets: {{{targets[0]}: {{variables: {{{name}: …}}}}}}"
            yield Problem(file.locations.where("variables", name), f"variable '{name}' has no value{suffix}", fix)


def _resolve_variables(file: BundleFile, target: str) -> dict[str, Any]:
    values = {name: written.value for name, written in _variable_values(file, target).items()}
    without_value = _variables_without_value(file, target)
    return without_value | resolve_variables(values, known_references(file.bundle, target, without_value))


def _variables_without_value(file: BundleFile, target: str) -> dict[str, Unresolved]:
    """Return the declared variables that have no value in a target, each as an unresolved reference to itself."""
    values = _variable_values(file, target)
    return {name: Unresolved(f"${{var.{name}}}") for name in file.variables() if name not in values}


def _variable_values(file: BundleFile, target: str) -> dict[str, WrittenValue]:
    """Return the values of variables in one target before references are resolved: the target's, or the default."""
    declared = file.variables()
    written: list[tuple[KeyPath, Any]] = [(("variables", name), raw) for name, raw in declared.items()]
    for name, raw in file.section("targets", target, "variables").items():
        if name in declared:
            written.append((("targets", target, "variables", name), raw))
    values: dict[str, WrittenValue] = {}
    for path, raw in written:
        value = _written_value(raw, path)
        if value is not None:
            values[str(path[-1])] = value
    return values


def _written_value(raw: Any, path: KeyPath) -> WrittenValue | None:
    """Return the value of a variable from its definition or plain value; None if the definition has no value."""
    if not _is_definition(raw, path):
        return WrittenValue(raw, path)
    definition = {} if raw is None else raw
    is_default_misspelled = "default" in intended_keys(definition, BUNDLE_GRAMMAR.kinds["variable"]) - definition.keys()
    if "lookup" in definition or is_default_misspelled:  # both are reported as problems of the key
        return WrittenValue(Unresolved(), path)
    return WrittenValue(definition["default"], (*path, "default")) if "default" in definition else None


def _is_definition(raw: Any, path: KeyPath) -> bool:
    """Return whether a variable is written as a definition such as {default: 1}, rather than as a plain value.

    In a target, a mapping is a plain value if it has any key that definitions do not have.
    """
    if path[0] == "variables":
        return raw is None or isinstance(raw, dict)
    return isinstance(raw, dict) and bool(raw) and raw.keys() <= DEFINITION_KEYS


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
