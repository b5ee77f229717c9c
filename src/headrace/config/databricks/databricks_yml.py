"""databricks.yml and the files that it includes: the part that is carried out, and a word on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.databricks.bundle_grammar import BUNDLE_GRAMMAR
from headrace.config.databricks.job_definitions import Job, Target, in_targets, known_in
from headrace.config.databricks.references import Unresolved, put_in, variables_of
from headrace.config.document import Document, read_document
from headrace.config.locations import KeyLocations, KeyPath, closest_match
from headrace.errors import Problem

FILE = "databricks.yml"
MODES = BUNDLE_GRAMMAR.kinds["mode"]
DEFINITION = {*BUNDLE_GRAMMAR.kinds["variable"], *BUNDLE_GRAMMAR.left["variable"]}


@dataclass
class Resources:
    """What databricks.yml and the files it includes say; the jobs as they are written, for all targets."""

    name: str
    lines: KeyLocations = field(default_factory=lambda: KeyLocations(FILE))
    targets: dict[str, Target] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    written: bool = True


def read_resources(root: Path) -> Resources:
    """databricks.yml and what it includes; without one, a bundle is named after its directory."""
    if not (root / FILE).is_file():
        return Resources(name=root.name, written=False)
    document = read_document(root / FILE, FILE, strict=False)
    found = Resources(root.name, document.locations, problems=list(document.problems))
    if not document.mapping:
        return found
    whole = {**document.mapping, "targets": _filled(document.mapping.get("targets", {}))}
    found.problems += BUNDLE_GRAMMAR.against(whole, FILE, document.locations, ())
    found.name = _text(_keys(whole, "bundle"), "name") or root.name
    found.targets = _targets(whole, found)
    _jobs(document, found)
    for file in _included(root, document, found.problems):
        included = read_document(file, file.relative_to(root).as_posix(), strict=False)
        found.problems += included.problems
        if included.data is not None:
            _only_resources(included, found)
        _jobs(included, found)
    return found


# ── Targets and variables ─────────────────────────────────────────────────────────────────────────────


def _targets(whole: Mapping[str, Any], found: Resources) -> dict[str, Target]:
    names = _keys(whole, "variables")
    declared = _declared(whole, found)
    targets: dict[str, Target] = {}
    lacking: dict[str, list[str]] = {}
    for name, raw in _keys(whole, "targets").items():
        own = _mapping(raw)
        written = dict(declared)
        for variable, value in _keys(own, "variables").items():
            at = ("targets", name, "variables", variable)
            if variable not in names:
                message = f"target '{name}' sets the variable '{variable}', which is not declared"
                fix = closest_match(variable, names, f"declare it at the top: variables: {{{variable}: {{}}}}")
                found.problems.append(Problem(found.lines.where(*at), message, fix))
            elif (given := _value(value, at, found)) is not None:
                written[variable] = given
        without = {variable: Unresolved(f"${{var.{variable}}}") for variable in names if variable not in written}
        for variable in without:
            lacking.setdefault(variable, []).append(name)
        known = known_in(found.name, name, without)
        variables = without | variables_of(written, known, found.lines, found.problems)
        targets[name] = _target(name, whole, own, variables, found)
    found.problems += [_without_value(variable, some, targets, found) for variable, some in lacking.items()]
    return targets


def _declared(whole: Mapping[str, Any], found: Resources) -> dict[str, tuple[Any, KeyPath]]:
    """The variables that have a default, each with the place where it stands."""
    declared = {}
    for name, raw in _keys(whole, "variables").items():
        value = _value({} if raw is None else raw, ("variables", name), found)
        if value is not None:
            declared[name] = value
    return declared


def _value(raw: Any, at: KeyPath, found: Resources) -> tuple[Any, KeyPath] | None:
    """A variable's value: what stands under `default`, or a plain value; a target may write keys as the value too."""
    if not isinstance(raw, dict) or (at[0] == "targets" and not (raw and raw.keys() <= DEFINITION)):
        return raw, at
    found.problems += BUNDLE_GRAMMAR.against(raw, "variable", found.lines, at)
    if "lookup" in raw:
        return Unresolved(), at
    return (raw["default"], (*at, "default")) if "default" in raw else None


def _without_value(variable: str, some: list[str], targets: Mapping[str, Target], found: Resources) -> Problem:
    few = "" if len(some) == len(targets) else f" ({in_targets(some)})"
    fix = f"give it one: default: …, or targets: {{{some[0]}: {{variables: {{{variable}: …}}}}}}"
    return Problem(found.lines.where("variables", variable), f"variable '{variable}' has no value{few}", fix)


def _target(
    name: str, whole: Mapping[str, Any], raw: Mapping[str, Any], variables: dict[str, Any], found: Resources
) -> Target:
    known = known_in(found.name, name, variables)

    def part(key: str) -> tuple[Any, Any]:
        """What stands above all targets, and what this one says."""
        above = put_in(whole.get(key), known, found.lines, (key,), found.problems)
        return above, put_in(raw.get(key), known, found.lines, ("targets", name, key), found.problems)

    above, own = part("workspace")
    workspace = {**_mapping(above), **_mapping(own)}
    run_as = [one for one in reversed(part("run_as")) if isinstance(one, dict)]
    mode = raw.get("mode")
    return Target(
        name=name,
        mode=mode if mode in MODES else None,
        default=raw.get("default") is True,
        host=_text(workspace, "host"),
        root_path=_text(workspace, "root_path"),
        profile=_text(workspace, "profile"),
        run_as=run_as[0] if run_as else {},
        permissions=tuple(
            one for some in part("permissions") if isinstance(some, list) for one in some if isinstance(one, dict)
        ),
        variables=variables,
    )


# ── Included files and jobs ───────────────────────────────────────────────────────────────────────────


def _included(root: Path, document: Document, problems: list[Problem]) -> list[Path]:
    patterns = document.mapping.get("include", [])
    files: dict[Path, None] = {}
    for at, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        where = document.locations.where("include", at)
        relative = isinstance(pattern, str) and pattern and not Path(pattern).is_absolute()
        try:
            matched = sorted(file for file in root.glob(pattern) if file.is_file()) if relative else []
        except (ValueError, IndexError) as error:  # no pattern
            problems.append(Problem(where, f"include: '{pattern}': {error}", "write it like resources/*.yml"))
            continue
        matched = [file for file in matched if file != root / FILE]
        if not matched and isinstance(pattern, str):
            fix = f"correct it, or add a file; it starts at the directory of {FILE}"
            problems.append(Problem(where, f"include: '{pattern}' matches no file", fix))
        files.update(dict.fromkeys(matched))
    return list(files)


def _only_resources(included: Document, found: Resources) -> None:
    elsewhere = {key for key in BUNDLE_GRAMMAR.kinds[FILE] if key != "resources"}
    for key in included.mapping:
        if key in elsewhere:
            message = f"'{key}' is read in {FILE} only"
            found.problems.append(Problem(included.locations.where(key), message, f"move it to {FILE}"))
    rest = {key: value for key, value in included.mapping.items() if key not in elsewhere}
    found.problems += BUNDLE_GRAMMAR.against(rest, "included", included.locations, ())


def _jobs(document: Document, found: Resources) -> None:
    for name, body in _keys(_keys(document.mapping, "resources"), "jobs").items():
        if not isinstance(body, dict):
            continue
        job = Job(name, body, document.locations)
        if name in found.jobs:
            fix = f"keep one of them; the first is at {found.jobs[name].where()}"
            found.problems.append(Problem(job.where(), f"job '{name}' is written twice", fix))
        found.jobs.setdefault(name, job)


def _filled(targets: Any) -> Any:
    """The targets; one that says nothing holds no keys."""
    return {name: {} if raw is None else raw for name, raw in targets.items()} if isinstance(targets, dict) else targets


def _keys(data: Any, key: str) -> dict[str, Any]:
    return _mapping(data.get(key)) if isinstance(data, dict) else {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
