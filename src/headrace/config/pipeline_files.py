"""conf/pipelines/*.yml -> drafts: the well-formed steps, the names of all, and where each key stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.document import Document, read_document
from headrace.config.locations import KeyLocations, KeyPath, closest_match, closest_name, describe_path
from headrace.config.model_builder import build_model, keys_of
from headrace.config.models import Step
from headrace.config.substitution import references
from headrace.errors import Problem

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
FOLDER = "conf/pipelines"


@dataclass(frozen=True)
class Draft:
    """One pipeline file as far as it could be read."""

    name: str
    locations: KeyLocations
    steps: dict[str, Step] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    tables: tuple[tuple[str, int, str], ...] = ()  # step, sink, table: also of steps that are not well formed
    is_unread: bool = False  # nobody knows what it holds


def read_pipelines(root: Path) -> tuple[list[Draft], list[Problem]]:
    """All pipeline files of a bundle, in the order of their names."""
    drafts: list[Draft] = []
    problems: list[Problem] = []
    for path in sorted((root / FOLDER).glob("[!.]*.y*ml")):  # hidden ones are of editors
        file = f"{FOLDER}/{path.name}"
        if path.suffix == ".yaml":
            problems.append(Problem(file, "the file is not read", f"name it {path.stem}.yml"))
        if path.suffix != ".yml":
            continue
        if not NAME.match(path.stem):
            fix = "use letters, digits and '_', not starting with a digit"
            problems.append(Problem(file, f"'{path.stem}' is not a name for a pipeline", fix))
        draft, found = _draft(path.stem, read_document(path, file))
        drafts.append(draft)
        problems += found
    if not drafts:
        problems.append(Problem(FOLDER, "there is no pipeline", f"write one: {FOLDER}/orders.yml"))
    return drafts, problems


def _draft(name: str, document: Document) -> tuple[Draft, list[Problem]]:
    problems = list(document.problems)
    lines = document.locations
    if document.data is None:
        return Draft(name, lines, is_unread=True), problems
    for key in document.mapping:
        if key != "steps":
            problems.append(Problem(lines.where(key), f"unknown key '{key}'", closest_match(key, ["steps"])))
    written = document.mapping.get("steps")
    if not isinstance(written, dict) or not written:
        if not problems:
            fix = "write steps: {name: {…}}"
            problems.append(Problem(lines.where("steps"), "the pipeline has no steps", fix))
        written = {}
    steps: dict[str, Step] = {}
    tables: list[tuple[str, int, str]] = []
    for key, raw in written.items():
        step, found = _step(key, raw, lines)
        problems += found
        if step is not None:
            steps[key] = step
            tables += [(key, at, sink.table) for at, sink in enumerate(step.writes) if sink.table]
        else:
            tables += _tables(key, raw)
    return Draft(name, lines, steps, tuple(written), tuple(tables)), problems


def _step(name: str, raw: Any, lines: KeyLocations) -> tuple[Step | None, list[Problem]]:
    at: KeyPath = ("steps", name)
    problems = []
    if not NAME.match(name):
        fix = "use letters, digits and '_', not starting with a digit"
        problems.append(Problem(lines.where(*at), f"'{name}' is not a name for a step", fix))
    for key in _sinks(raw):
        if isinstance(raw[key], dict):
            raw = {**raw, key: [raw[key]]}
            lines.also((*at, key), (*at, key, 0))  # one sink is a list of one
    for path, names in _referring(raw, at):
        message = f"{describe_path(path)}: '${{{names}}}' stands in a pipeline"
        fix = "a pipeline is the same in every environment: put what differs into the environment files"
        problems.append(Problem(lines.where(*path), message, fix))
    step, found = build_model(Step, raw, lines, at, name=name)
    return step, problems + found


def _sinks(raw: Any) -> list[str]:
    """The key under which a step has its sinks, or the one by which that was meant."""
    known = keys_of(Step)
    keys = list(raw) if isinstance(raw, dict) else []
    return [key for key in keys if key == "writes" or (key not in known and closest_name(key, known) == "writes")]


def _referring(data: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _referring(value, (*path, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from _referring(value, (*path, at))
    elif isinstance(data, str):
        yield from ((path, name) for name in sorted(references(data)) if NAME.match(name))


def _tables(step: str, raw: Any) -> Iterator[tuple[str, int, str]]:
    writes = next((raw[key] for key in _sinks(raw)), None)
    for at, sink in enumerate(writes if isinstance(writes, list) else [writes]):
        if isinstance(sink, dict) and isinstance(sink.get("table"), str):
            yield step, at, sink["table"]
