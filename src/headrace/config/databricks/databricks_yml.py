"""Read databricks.yml and the files that it includes, and report the keys that Headrace does not support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.databricks.bundle_grammar import BUNDLE_FILE, BUNDLE_GRAMMAR, INCLUDED_FILE, TOP_LEVEL
from headrace.config.databricks.bundle_targets import BundleFile, check_targets_and_variables, resolve_target
from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.document import Document, read_document
from headrace.config.locations import KeyLocations
from headrace.errors import Problem


@dataclass(frozen=True)
class Resources:
    """The content of databricks.yml and the files that it includes.

    `jobs` are as written, before references are resolved for a target.
    """

    name: str  # of the bundle
    locations: KeyLocations = field(default_factory=lambda: KeyLocations(BUNDLE_FILE))  # of databricks.yml only
    targets: dict[str, Target] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    exists: bool = True  # whether the bundle has a databricks.yml
    has_valid_targets: bool = True  # whether `targets` lists the targets; if False, `problems` contains the reason


def read_resources(root: Path) -> Resources:
    """Return the content of databricks.yml and the files that it includes, and the problems of these files.

    A bundle without databricks.yml, or without a name in the file, is named after its directory.
    """
    if not (root / BUNDLE_FILE).is_file():
        return Resources(name=root.name, exists=False)
    document = read_document(root / BUNDLE_FILE, BUNDLE_FILE, strict=False)
    if not document.mapping:  # the file is unreadable, or an empty mapping, which has no targets
        is_readable = document.data is not None
        return Resources(root.name, document.locations, problems=list(document.problems), has_valid_targets=is_readable)
    files, include_problems = _included_files(root, document)
    included = [read_document(file, file.relative_to(root).as_posix(), strict=False) for file in files]
    jobs, job_problems = _collect_jobs([document, *included])
    content = {
        key: _replace_null_targets(value) if key == "targets" else value for key, value in document.mapping.items()
    }
    file = BundleFile(_bundle_name(content) or root.name, content, document.locations, jobs)
    problems = [
        *document.problems,
        *BUNDLE_GRAMMAR.check(content, TOP_LEVEL, document.locations, ()),
        *check_targets_and_variables(file),
        *include_problems,
        *(problem for document in included for problem in (*document.problems, *_check_included(document))),
        *job_problems,
    ]
    return Resources(
        name=file.bundle,
        locations=document.locations,
        targets={name: resolve_target(file, name) for name in file.section("targets")},
        jobs=jobs,
        problems=problems,
        has_valid_targets=file.is_valid("targets"),
    )


def _included_files(root: Path, document: Document) -> tuple[list[Path], list[Problem]]:
    """Return the files that match the patterns under `include`, and the problems of the patterns."""
    patterns = document.mapping.get("include", [])
    files: dict[Path, None] = {}  # a set that keeps the order
    problems: list[Problem] = []
    for index, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        where = document.locations.where("include", index)
        is_usable = isinstance(pattern, str) and pattern != "" and not Path(pattern).is_absolute()
        try:
            matches = sorted(file for file in root.glob(pattern) if file.is_file()) if is_usable else []
        except (ValueError, IndexError) as error:  # pathlib cannot parse the pattern
            message = f"include: '{pattern}' is not a valid pattern: {error}"
            problems.append(Problem(where, message, "write a pattern like resources/*.yml"))
            continue
        matches = [file for file in matches if file != root / BUNDLE_FILE]
        if not matches and isinstance(pattern, str):  # the grammar reports patterns that are not text
            fix = f"correct the pattern, or add a file; patterns are relative to the directory of {BUNDLE_FILE}"
            problems.append(Problem(where, f"include: '{pattern}' matches no file", fix))
        files.update(dict.fromkeys(matches))
    return list(files), problems


def _check_included(document: Document) -> Iterator[Problem]:
    """Yield the problems of an included file.

    These are unknown keys, keys that are allowed only in databricks.yml, and malformed `resources`.
    """
    only_in_bundle_file = {key for key in BUNDLE_GRAMMAR.kinds[TOP_LEVEL] if key != "resources"}
    for key in document.mapping:
        if key in only_in_bundle_file:
            message = f"'{key}' is allowed only in {BUNDLE_FILE}"
            yield Problem(document.locations.where(key), message, f"move it to {BUNDLE_FILE}")
    others = {key: value for key, value in document.mapping.items() if key not in only_in_bundle_file}
    yield from BUNDLE_GRAMMAR.check(others, INCLUDED_FILE, document.locations, ())


def _collect_jobs(documents: Sequence[Document]) -> tuple[dict[str, Job], list[Problem]]:
    """Return the jobs of all files by key, and the problems of keys that are used twice.

    If several jobs have the same key, the first one is returned. Jobs that are not mappings are omitted.
    """
    jobs: dict[str, Job] = {}
    problems: list[Problem] = []
    for document in documents:
        resources = document.mapping.get("resources")
        bodies = resources.get("jobs") if isinstance(resources, dict) else None
        for key, body in bodies.items() if isinstance(bodies, dict) else ():
            if not isinstance(body, dict):
                continue
            job = Job(key, body, document.locations)
            if key in jobs:
                fix = f"keep one of them; the first is at {jobs[key].where()}"
                problems.append(Problem(job.where(), f"job '{key}' is defined twice", fix))
            jobs.setdefault(key, job)
    return jobs, problems


def _replace_null_targets(targets: Any) -> Any:
    """Return the targets, with an empty mapping for each target without a value, such as `dev:`.

    Targets that are not a mapping are returned unchanged.
    """
    return {name: {} if raw is None else raw for name, raw in targets.items()} if isinstance(targets, dict) else targets


def _bundle_name(content: dict[str, Any]) -> str:
    """Return the name in databricks.yml; an empty string if the file has no valid name."""
    bundle = content.get("bundle")
    name = bundle.get("name") if isinstance(bundle, dict) else None
    return name if isinstance(name, str) else ""
