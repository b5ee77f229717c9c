"""Resolve the targets of databricks.yml and their variables, and report their problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.config.databricks.bundle_grammar import BUNDLE_GRAMMAR, KEYS_SHARED_BY_TARGETS, TOP_LEVEL
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
DECLARATION_KEYS = {*BUNDLE_GRAMMAR.kinds["variable"], *BUNDLE_GRAMMAR.unsupported["variable"]}


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
        """Return whether the top-level section `key` is a mapping or absent.

        Return False if the section is not a mapping, or if it is absent and another key looks like a misspelling of
        `key`. The grammar reports these problems.
        """
        if key in self.content:
            return isinstance(self.content[key], dict)
        return key not in intended_keys(self.content, BUNDLE_GRAMMAR.kinds[TOP_LEVEL])

    def variables(self) -> dict[str, Any]:
        """Return the declarations of variables by name.

        If the section `variables` is invalid, return a declaration for each variable that a target sets or a reference
        names, so that only the section is reported.
        """
        if self.is_valid("variables"):
            return self.section("variables")
        used = [name for target in self.section("targets") for name in self.section("targets", target, "variables")]
        references = references_in([self.content, *(job.body for job in self.jobs.values())])
        used += [name.removeprefix("var.") for name in references if name.startswith("var.")]
        return {name: {"default": Unresolved(f"${{var.{name}}}")} for name in used}


def resolve_target(file: BundleFile, name: str) -> Target:
    """Return one target with its references resolved, including the settings at the top level.

    The target's `run_as` and the keys of its `workspace` override those at the top level. The target's permissions are
    added to those at the top level.
    """
    variables = _resolve_variables(file, name)
    known = known_references(file.bundle, name, variables)
    section = file.section("targets", name)
    top_level = {key: resolve_references(file.content.get(key), known) for key in KEYS_SHARED_BY_TARGETS}
    own = {key: resolve_references(section.get(key), known) for key in KEYS_SHARED_BY_TARGETS}
    workspace = {**_mapping_or_empty(top_level["workspace"]), **_mapping_or_empty(own["workspace"])}
    mode = section.get("mode")
    return Target(
        name=name,
        mode=mode if mode in MODES else None,
        default=section.get("default") is True,
        host=_text_or_empty(workspace, "host"),
        root_path=_text_or_empty(workspace, "root_path"),
        profile=_text_or_empty(workspace, "profile"),
        run_as=own["run_as"] if isinstance(own["run_as"], dict) else _mapping_or_empty(top_level["run_as"]),
        permissions=(*_mappings_in(top_level["permissions"]), *_mappings_in(own["permissions"])),
        variables=variables,
    )


def check_targets_and_variables(file: BundleFile) -> Iterator[Problem]:
    """Yield the problems of variables, and the unknown references in the settings of targets and of the top level.

    A problem of the top level is yielded once for each target that has it.
    """
    yield from _check_declarations(file)
    yield from _check_missing_values(file)
    for name, section in file.section("targets").items():
        references_except_values = known_references(file.bundle, name, _variables_without_value(file, name))
        yield from check_variables(_variable_values(file, name), references_except_values, file.locations)
        known = known_references(file.bundle, name, _resolve_variables(file, name))
        for key in KEYS_SHARED_BY_TARGETS:
            yield from check_references(file.content.get(key), known, file.locations, (key,))
            own = _mapping_or_empty(section).get(key)
            yield from check_references(own, known, file.locations, ("targets", name, key))


def _check_declarations(file: BundleFile) -> Iterator[Problem]:
    """Yield the malformed declarations of variables, and the undeclared variables that a target sets."""
    declared = file.variables()
    raw_by_path: list[tuple[KeyPath, Any]] = [
        (("variables", name), raw) for name, raw in file.section("variables").items()
    ]
    for target in file.section("targets"):
        for name, raw in file.section("targets", target, "variables").items():
            path = ("targets", target, "variables", name)
            if name in declared:
                raw_by_path.append((path, raw))
            else:
                message = f"target '{target}' sets the undeclared variable '{name}'"
                fix = fix_for_unknown_name(name, declared, f"declare it at the top level: variables: {{{name}: {{}}}}")
                yield Problem(file.locations.where(*path), message, fix)
    for raw_path, raw in raw_by_path:
        if isinstance(raw, dict) and _is_declaration(raw, raw_path):
            yield from BUNDLE_GRAMMAR.check(raw, "variable", file.locations, raw_path)


def _check_missing_values(file: BundleFile) -> Iterator[Problem]:
    """Yield the variables that have no value in one or more targets."""
    values = {target: _variable_values(file, target) for target in file.section("targets")}
    for name in file.variables():
        targets = [target for target in values if name not in values[target]]
        if targets:
            suffix = "" if len(targets) == len(values) else f" ({format_targets(targets)})"
            fix = f"add default: …, or set it in the target: targets: {{{targets[0]}: {{variables: {{{name}: …}}}}}}"
            yield Problem(file.locations.where("variables", name), f"variable '{name}' has no value{suffix}", fix)


def _resolve_variables(file: BundleFile, target: str) -> dict[str, Any]:
    """Return all declared variables in one target, by name, with the references in their values resolved.

    A variable without a value is an unresolved reference to itself.
    """
    values = {name: written.value for name, written in _variable_values(file, target).items()}
    without_value = _variables_without_value(file, target)
    return without_value | resolve_variables(values, known_references(file.bundle, target, without_value))


def _variables_without_value(file: BundleFile, target: str) -> dict[str, Unresolved]:
    """Return the declared variables that have no value in one target, each as an unresolved reference to itself."""
    values = _variable_values(file, target)
    return {name: Unresolved(f"${{var.{name}}}") for name in file.variables() if name not in values}


def _variable_values(file: BundleFile, target: str) -> dict[str, WrittenValue]:
    """Return the values of the declared variables in one target, before references are resolved.

    The value that the target sets overrides the default. A variable that has neither is omitted.
    """
    declared = file.variables()
    raw_by_path: list[tuple[KeyPath, Any]] = [(("variables", name), raw) for name, raw in declared.items()]
    for name, raw in file.section("targets", target, "variables").items():
        if name in declared:
            raw_by_path.append((("targets", target, "variables", name), raw))
    values: dict[str, WrittenValue] = {}
    for path, raw in raw_by_path:  # the declarations come first, so that the values of the target override them
        value = _written_value(raw, path)
        if value is not None:
            values[str(path[-1])] = value
    return values


def _written_value(raw: Any, path: KeyPath) -> WrittenValue | None:
    """Return the value of a variable, which is a plain value or the default of a declaration.

    `raw` is the plain value or the declaration at a key path. Return None for a declaration without a default.
    """
    if not _is_declaration(raw, path):
        return WrittenValue(raw, path)
    declaration = {} if raw is None else raw
    intended = intended_keys(declaration, BUNDLE_GRAMMAR.kinds["variable"])
    is_default_misspelled = "default" in intended and "default" not in declaration
    # The grammar reports the key `lookup` and a misspelled `default`. Therefore the missing value is not reported.
    if "lookup" in declaration or is_default_misspelled:
        return WrittenValue(Unresolved(), path)
    return WrittenValue(declaration["default"], (*path, "default")) if "default" in declaration else None


def _is_declaration(raw: Any, path: KeyPath) -> bool:
    """Return whether a variable is written as a declaration such as {default: 1}, rather than as a plain value.

    At the top level, mappings and empty values are declarations. In a target, a mapping is a declaration if it is not
    empty and has only keys of declarations.
    """
    if path[0] == "variables":
        return raw is None or isinstance(raw, dict)
    return isinstance(raw, dict) and bool(raw) and raw.keys() <= DECLARATION_KEYS


def _mapping_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings_in(values: Any) -> list[dict[str, Any]]:
    """Return the mappings in a list; an empty list if the value is not a list."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _text_or_empty(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
