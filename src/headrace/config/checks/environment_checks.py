"""An environment on its own: engine, tables, sources and the place of each person in a shared target."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from headrace.config.databricks.job_definitions import Target
from headrace.config.environment_files import EnvironmentDraft, is_absolute, path_values
from headrace.config.locations import KeyPath, describe_path
from headrace.config.models import Environment, FileSource, KafkaSource
from headrace.config.substitution import references
from headrace.errors import Problem

FORMATS = ("json", "csv", "text", "parquet", "orc", "avro", "xml", "binaryFile")
ENGINES = {
    "local": {"spark.master": "cores", "spark.driver.memory": "memory", "spark.ui.enabled": "ui"},
    "spark": {"spark.master": "master"},
}
LEAST_MEMORY = 512  # MB: Spark 4.2.0 wants 450 of heap, and says so with a stack trace
Found = Iterator[tuple[KeyPath, str, str]]


def check_environment(draft: EnvironmentDraft, targets: Mapping[str, Target]) -> list[Problem]:
    """The problems of one environment file that lie between its keys."""
    found: list[tuple[KeyPath, str, str]] = []
    if draft.environment is not None:
        found += [*_tables(draft.environment), *_sources(draft.environment), *_engine(draft.environment)]
        engine = draft.environment.engine
        if engine.kind == "databricks":
            found += _relative(draft, "which a Databricks job has no place for", "write /Volumes/…")
        elif engine.kind == "spark" and engine.releases:
            fix = "write an absolute path: each release would have its own"
            found += [one for one in _relative(draft, "which starts in a release", fix) if one[0][0] != "engine"]
    target = targets.get(draft.name)
    if draft.raw and target is not None and target.is_development:
        found += _personal(draft)
    return [
        Problem(draft.locations.where(*path), f"{describe_path(path)}: {message}", fix) for path, message, fix in found
    ]


def _tables(environment: Environment) -> Found:
    tables = environment.tables
    in_catalog = tables.catalog is not None or tables.schema_ is not None
    if (tables.root is not None) == in_catalog:
        fix = "write {root: …} or {catalog: …, schema: …}"
        yield ("tables",), "must be either under a root or in a catalog's schema", fix
    elif in_catalog and (tables.catalog is None or tables.schema_ is None):
        missing = "catalog" if tables.catalog is None else "schema"
        yield ("tables",), f"'{missing}' is missing", f"add '{missing}:' here"
    elif in_catalog and environment.engine.kind == "local":
        yield ("tables",), "the local engine has no catalog", "write {root: .headrace/tables}"


def _engine(environment: Environment) -> Found:
    """What Spark would not start with; and what the engine's own keys say cannot be said again."""
    memory = getattr(environment.engine, "memory", None)
    if memory and memory[-1] == "m" and int(memory[:-1]) < LEAST_MEMORY:
        yield ("engine", "memory"), f"'{memory}' is too little for Spark", f"write at least {LEAST_MEMORY}m"
    for setting, key in ENGINES.get(environment.engine.kind, {}).items():
        if setting in environment.settings:
            yield ("settings", setting), f"is what 'engine.{key}' says", f"write engine: {{{key}: …}} instead"


def _relative(draft: EnvironmentDraft, why: str, fix: str) -> Found:
    """A deployed run has no directory of the user's that relative paths could start at."""
    for path, place in path_values(draft.raw):
        if isinstance(place, str) and place and not is_absolute(place) and not place.startswith("${"):
            yield path, f"'{place}' is a relative path, {why}", fix


def _sources(environment: Environment) -> Found:
    for name, source in environment.sources.items():
        if isinstance(source, KafkaSource) and bool(source.topics) == (source.pattern is not None):
            yield ("sources", name), "must have exactly one of topics, pattern", "write topics: [orders]"
        if isinstance(source, FileSource) and source.format not in FORMATS:
            # Spark takes any format by name: only a slip of the pen is refused.
            lower = {known.lower(): known for known in FORMATS}
            close = difflib.get_close_matches(source.format.lower(), lower, n=1, cutoff=0.7)
            if close:
                message = f"unknown format '{source.format}'"
                yield ("sources", name, "format"), message, f"did you mean '{lower[close[0]]}'?"


def _personal(draft: EnvironmentDraft) -> Found:
    required = set(draft.values.required())
    for key in ("tables", "checkpoints"):
        if key in draft.raw and not references(draft.raw[key]) & required:
            name = next(iter(sorted(required)), "user")
            message = "is the same for everybody, but the target's mode is development"
            fix = f"put ${{{name}}} into it, with values: {{{name}: {{required: true}}}}"
            yield (key,), message, fix
