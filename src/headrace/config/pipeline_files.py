"""Read conf/pipelines/*.yml: the valid steps, the names of all steps, and the location of each key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.document import Document, read_document, wrong_suffix
from headrace.config.locations import KeyLocations, KeyPath, closest_match, closest_name, describe_path
from headrace.config.model_builder import build_model
from headrace.config.model_keys import keys_of
from headrace.config.models import Step
from headrace.config.substitution import references
from headrace.errors import Problem

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
FOLDER = "conf/pipelines"
NAME_FIX = "use letters, digits and '_', not starting with a digit"


@dataclass(frozen=True)
class Draft:
    """One pipeline file, valid or not."""

    name: str
    locations: KeyLocations
    steps: dict[str, Step] = field(default_factory=dict)  # the valid ones
    names: tuple[str, ...] = ()  # of all steps
    tables: tuple[tuple[str, int, str], ...] = ()  # step, sink and table, also of steps that are not valid
    is_incomplete: bool = False  # it may have more steps and tables than these


def read_pipelines(root: Path) -> tuple[list[Draft], list[Problem]]:
    """Return all pipeline files of a bundle, sorted by name, and their problems."""
    drafts: list[Draft] = []
    problems: list[Problem] = []
    for path in sorted((root / FOLDER).glob("[!.]*.y*ml")):  # hidden files belong to editors
        file = f"{FOLDER}/{path.name}"
        if path.suffix == ".yaml":
            problems.append(wrong_suffix(file))
            drafts.append(Draft(path.stem, KeyLocations(file), is_incomplete=True))
        if path.suffix != ".yml":
            continue
        if not NAME.match(path.stem):
            problems.append(Problem(file, f"'{path.stem}' is not a valid name for a pipeline", NAME_FIX))
        draft, draft_problems = _read_draft(path.stem, read_document(path, file))
        drafts.append(draft)
        problems += draft_problems
    if not drafts:
        problems.append(Problem(FOLDER, "the bundle has no pipeline", f"write one: {FOLDER}/orders.yml"))
    return drafts, problems


def _read_draft(name: str, document: Document) -> tuple[Draft, list[Problem]]:
    problems = list(document.problems)
    locations = document.locations
    if document.data is None:
        return Draft(name, locations, is_incomplete=True), problems
    for key in document.mapping:
        if key != "steps":
            problems.append(Problem(locations.where(key), f"unknown key '{key}'", closest_match(key, ["steps"])))
    raw_steps = document.mapping.get("steps")
    if not isinstance(raw_steps, dict) or not raw_steps:
        if not problems:
            fix = "write steps: {name: {…}}"
            problems.append(Problem(locations.where("steps"), "the pipeline has no steps", fix))
        raw_steps = {}
    steps: dict[str, Step] = {}
    tables: list[tuple[str, int, str]] = []
    for key, raw in raw_steps.items():
        step, step_problems = _read_step(key, raw, document)
        problems += step_problems
        if step is not None:
            steps[key] = step
            tables += [(key, index, sink.table) for index, sink in enumerate(step.writes) if sink.table]
        else:
            tables += _tables_in(key, raw)
    has_invalid_steps = any(path[:1] == ("steps",) and len(path) <= 2 for path in document.invalid)
    is_incomplete = has_invalid_steps or (not raw_steps and bool(problems))
    return Draft(name, locations, steps, tuple(raw_steps), tuple(tables), is_incomplete), problems


def _read_step(name: str, raw: Any, document: Document) -> tuple[Step | None, list[Problem]]:
    locations = document.locations
    step_path: KeyPath = ("steps", name)
    problems = []
    invalid = set(document.invalid)
    if not NAME.match(name):
        problems.append(Problem(locations.where(*step_path), f"'{name}' is not a valid name for a step", NAME_FIX))
    for key in _sink_keys(raw):
        if isinstance(raw[key], dict):  # one sink is the short form of a list with one sink
            raw = {**raw, key: [raw[key]]}
            short_path: KeyPath = (*step_path, key)
            locations.add_alias(short_path, (*step_path, key, 0))
            invalid |= {(*short_path, 0, *path[3:]) for path in document.invalid if path[:3] == short_path}
    for path, value in _references_in(raw, step_path):
        message = f"{describe_path(path)}: a pipeline cannot contain the reference '${{{value}}}'"
        fix = "a pipeline is the same in every environment: move what differs to the environment files"
        problems.append(Problem(locations.where(*path), message, fix))
        invalid.add(path)
    step, step_problems = build_model(Step, raw, locations, step_path, invalid=invalid, name=name)
    return step, problems + step_problems


def _sink_keys(raw: Any) -> list[str]:
    """Return the keys of a step that contain its sinks: `writes`, or a misspelling of it."""
    known = keys_of(Step)
    keys = list(raw) if isinstance(raw, dict) else []
    return [key for key in keys if key == "writes" or (key not in known and closest_name(key, known) == "writes")]


def _references_in(data: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _references_in(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _references_in(value, (*path, index))
    elif isinstance(data, str):
        yield from ((path, name) for name in sorted(references(data)) if NAME.match(name))


def _tables_in(step: str, raw: Any) -> Iterator[tuple[str, int, str]]:
    writes = next((raw[key] for key in _sink_keys(raw)), None)
    for index, sink in enumerate(writes if isinstance(writes, list) else [writes]):
        if isinstance(sink, dict) and isinstance(sink.get("table"), str):
            yield step, index, sink["table"]
