"""Read conf/pipelines/*.yml: the valid steps, the names of all steps, and the location of each key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headrace.config.document import Document, read_document, wrong_suffix
from headrace.config.locations import KeyLocations, KeyPath, closest_name, describe_path, fix_for_unknown_name
from headrace.config.model_builder import build_model
from headrace.config.model_keys import keys_of
from headrace.config.models import Step
from headrace.config.substitution import references
from headrace.errors import Problem

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
PIPELINES_DIRECTORY = "conf/pipelines"
NAME_FIX = "use letters, digits and '_', not starting with a digit"


class WrittenTable(NamedTuple):
    """A table that a step writes, and the index of the sink in the step's `writes`."""

    step: str
    sink_index: int
    table: str


@dataclass(frozen=True)
class PipelineDraft:
    """The content of one pipeline file, valid or not."""

    name: str
    locations: KeyLocations
    steps: dict[str, Step] = field(default_factory=dict)  # only the valid steps
    step_names: tuple[str, ...] = ()  # including invalid steps
    tables: tuple[WrittenTable, ...] = ()  # including those of invalid steps
    is_incomplete: bool = False  # the file may define steps and tables that could not be read


def read_pipelines(root: Path) -> tuple[list[PipelineDraft], list[Problem]]:
    """Return the content of all pipeline files of a bundle, sorted by file name, and their problems."""
    drafts: list[PipelineDraft] = []
    problems: list[Problem] = []
    for path in sorted((root / PIPELINES_DIRECTORY).glob("[!.]*.y*ml")):  # without hidden files, which editors create
        file = f"{PIPELINES_DIRECTORY}/{path.name}"
        if path.suffix == ".yaml":
            problems.append(wrong_suffix(file))
            drafts.append(PipelineDraft(path.stem, KeyLocations(file), is_incomplete=True))
        if path.suffix != ".yml":
            continue
        if not NAME.match(path.stem):
            problems.append(Problem(file, f"'{path.stem}' is not a valid name for a pipeline", NAME_FIX))
        draft, draft_problems = _read_draft(path.stem, read_document(path, file))
        drafts.append(draft)
        problems += draft_problems
    if not drafts:
        fix = f"write one: {PIPELINES_DIRECTORY}/orders.yml"
        problems.append(Problem(PIPELINES_DIRECTORY, "the bundle has no pipeline", fix))
    return drafts, problems


def _read_draft(name: str, document: Document) -> tuple[PipelineDraft, list[Problem]]:
    """Return the content of a pipeline file that has been parsed, and its problems."""
    problems = list(document.problems)
    locations = document.locations
    if document.data is None:
        return PipelineDraft(name, locations, is_incomplete=True), problems
    for key in document.mapping:
        if key != "steps":
            problems.append(Problem(locations.where(key), f"unknown key '{key}'", fix_for_unknown_name(key, ["steps"])))
    raw_steps = document.mapping.get("steps")
    if not isinstance(raw_steps, dict) or not raw_steps:
        if not problems:
            fix = "write steps: {name: {…}}"
            problems.append(Problem(locations.where("steps"), "the pipeline has no steps", fix))
        raw_steps = {}
    steps: dict[str, Step] = {}
    tables: list[WrittenTable] = []
    for key, raw in raw_steps.items():
        step, step_problems = _read_step(key, raw, document)
        problems += step_problems
        if step is not None:
            steps[key] = step
            tables += [WrittenTable(key, index, sink.table) for index, sink in enumerate(step.writes) if sink.table]
        else:
            tables += _tables_of_invalid_step(key, raw)
    # The key path of `steps` has one part, and the key path of a step has two.
    has_unread_steps = any(path[:1] == ("steps",) and len(path) <= 2 for path in document.invalid)
    is_incomplete = has_unread_steps or (not raw_steps and bool(problems))
    return PipelineDraft(name, locations, steps, tuple(raw_steps), tuple(tables), is_incomplete), problems


def _read_step(name: str, raw: Any, document: Document) -> tuple[Step | None, list[Problem]]:
    """Return a step, or None if no valid model can be built from its data `raw`, and the step's problems."""
    locations = document.locations
    step_path: KeyPath = ("steps", name)
    problems = []
    invalid = set(document.invalid)
    if not NAME.match(name):
        problems.append(Problem(locations.where(*step_path), f"'{name}' is not a valid name for a step", NAME_FIX))
    for key in _sink_keys(raw):
        if isinstance(raw[key], dict):  # a mapping is the short form of a list with one sink
            raw = {**raw, key: [raw[key]]}
            short_path: KeyPath = (*step_path, key)
            locations.add_alias(short_path, (*step_path, key, 0))
            invalid |= {(*short_path, 0, *path[3:]) for path in document.invalid if path[:3] == short_path}
    for path, reference in _references_in(raw, step_path):
        message = f"{describe_path(path)}: a pipeline cannot contain the reference '${{{reference}}}'"
        fix = "move the value to the environment files; a pipeline is the same in every environment"
        problems.append(Problem(locations.where(*path), message, fix))
        invalid.add(path)
    step, step_problems = build_model(Step, raw, locations, step_path, invalid=invalid, name=name)
    return step, problems + step_problems


def _sink_keys(raw: Any) -> list[str]:
    """Return the keys of a step that contain its sinks: `writes` and misspellings of `writes`."""
    known = keys_of(Step)
    keys = list(raw) if isinstance(raw, dict) else []
    return [key for key in keys if key == "writes" or (key not in known and closest_name(key, known) == "writes")]


def _references_in(data: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the key path and the name of each `${name}` in the data, which is the value at the key path `path`."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _references_in(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _references_in(value, (*path, index))
    elif isinstance(data, str):
        yield from ((path, name) for name in sorted(references(data)) if NAME.match(name))


def _tables_of_invalid_step(step: str, raw: Any) -> Iterator[WrittenTable]:
    """Yield the tables that a step writes according to its data, from which no valid model can be built."""
    writes = next((raw[key] for key in _sink_keys(raw)), None)
    for index, sink in enumerate(writes if isinstance(writes, list) else [writes]):
        if isinstance(sink, dict) and isinstance(sink.get("table"), str):
            yield WrittenTable(step, index, sink["table"])
