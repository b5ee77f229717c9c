"""Check one environment without the steps: engine, tables, sources, relative paths, separate data for each user."""

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
# For each kind of engine, the Spark settings that must be set by a key of the engine, and these keys.
ENGINE_SETTINGS = {
    "local": {"spark.master": "cores", "spark.driver.memory": "memory", "spark.ui.enabled": "ui"},
    "spark": {"spark.master": "master"},
}
MIN_MEMORY_MB = 512  # Spark 4.2.0 requires a heap of 450 MB, and fails with a stack trace otherwise

PathProblem = tuple[KeyPath, str, str]  # key path in the environment file, message, fix


def check_environment(draft: EnvironmentDraft, targets: Mapping[str, Target]) -> list[Problem]:
    """Return the problems of one environment that `read_environment` does not detect."""
    problems: list[PathProblem] = []
    if draft.environment is not None:
        problems += _check_tables(draft.environment)
        problems += _check_sources(draft.environment)
        problems += _check_engine(draft.environment)
        engine = draft.environment.engine
        if engine.kind == "databricks":
            reason = "but a Databricks job does not start in the bundle's directory"
            problems += _check_paths(draft, reason, "write /Volumes/…")
        elif engine.kind == "spark" and engine.releases:
            fix = "write an absolute path: a relative path would differ between releases"
            relative_paths = _check_paths(draft, "which would be resolved inside a release", fix)
            # The paths of the engine may be relative: a deployment reads `releases` in the bundle, not in a release.
            problems += [(path, message, fix) for path, message, fix in relative_paths if path[0] != "engine"]
    target = targets.get(draft.name)
    if draft.raw and target is not None and target.is_development:
        problems += _check_isolation(draft)
    return [
        Problem(draft.locations.where(*path), f"{describe_path(path)}: {message}", fix)
        for path, message, fix in problems
    ]


def _check_tables(environment: Environment) -> Iterator[PathProblem]:
    """Yield a problem unless the tables have either a root, or a catalog and schema that the engine can use."""
    tables = environment.tables
    in_catalog = tables.catalog is not None or tables.schema_ is not None
    if (tables.root is not None) == in_catalog:
        fix = "write {root: …} or {catalog: …, schema: …}"
        yield ("tables",), "must have either root, or catalog and schema", fix
    elif in_catalog and (tables.catalog is None or tables.schema_ is None):
        missing = "catalog" if tables.catalog is None else "schema"
        yield ("tables",), f"'{missing}' is missing", f"add '{missing}:' here"
    elif in_catalog and environment.engine.kind == "local":
        yield ("tables",), "the local engine has no catalog", "write {root: .headrace/tables}"


def _check_engine(environment: Environment) -> Iterator[PathProblem]:
    """Yield memory sizes with which Spark cannot start, and settings that must be set by a key of the engine."""
    memory = getattr(environment.engine, "memory", None)  # a size that ends in g is always large enough
    if memory and memory[-1] == "m" and int(memory[:-1]) < MIN_MEMORY_MB:
        yield ("engine", "memory"), f"'{memory}' is too little for Spark", f"write at least {MIN_MEMORY_MB}m"
    for setting, key in ENGINE_SETTINGS.get(environment.engine.kind, {}).items():
        if setting in environment.settings:
            yield ("settings", setting), f"must be set by 'engine.{key}'", f"write engine: {{{key}: …}} instead"


def _check_paths(draft: EnvironmentDraft, reason: str, fix: str) -> Iterator[PathProblem]:
    """Yield the relative paths, because a deployed run does not start in the bundle's directory.

    `reason` is the end of the message: why the path cannot be relative.
    """
    for path, location in path_values(draft.raw):
        if not isinstance(location, str) or location == "" or location.startswith("${"):
            continue  # the value is invalid, or starts with a reference, whose value may be an absolute path
        if not is_absolute(location):
            yield path, f"'{location}' is a relative path, {reason}", fix


def _check_sources(environment: Environment) -> Iterator[PathProblem]:
    """Yield Kafka sources without exactly one of `topics` and `pattern`, and misspelled formats of file sources."""
    for name, source in environment.sources.items():
        if isinstance(source, KafkaSource) and bool(source.topics) == (source.pattern is not None):
            yield ("sources", name), "must have exactly one of topics, pattern", "write topics: [orders]"
        if isinstance(source, FileSource) and source.format not in FORMATS:
            # Spark accepts any format that a library registers. Therefore only probable misspellings are reported.
            formats = {known.lower(): known for known in FORMATS}
            matches = difflib.get_close_matches(source.format.lower(), formats, n=1, cutoff=0.7)
            if matches:
                message = f"unknown format '{source.format}'"
                yield ("sources", name, "format"), message, f"did you mean '{formats[matches[0]]}'?"


def _check_isolation(draft: EnvironmentDraft) -> Iterator[PathProblem]:
    """Yield the tables and checkpoints that all users of a development target would share.

    Each user gives the required values with --value. Therefore a location is separate for each user if it contains a
    reference to a required value.
    """
    required = set(draft.values.required())
    for key in ("tables", "checkpoints"):
        if references(draft.raw.get(key)) - draft.values.declared.keys():
            continue  # the undeclared value has been reported
        if key in draft.raw and not references(draft.raw[key]) & required:
            value_name = min(required, default="user")
            message = "is the same for all users, but the target's mode is development"
            fix = f"use ${{{value_name}}} in {key}, and declare values: {{{value_name}: {{required: true}}}}"
            yield (key,), message, fix
