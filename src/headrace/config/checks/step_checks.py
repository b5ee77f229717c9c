"""Check each step on its own: keys that exclude each other, and keys that require another key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.config.expectation_scope import deduplicates
from headrace.config.kinds.expectation import BATCH_EXPECTATIONS, EXPECTATIONS
from headrace.config.kinds.sinks import SINKS
from headrace.config.locations import KeyPath, describe_path
from headrace.config.models import Read, Rule, Sink, Step
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem

SOURCE_KEYS = ("schema_", "infer", "max_future", "expect")  # keys that apply only to inputs that read a source
# The keys that an upsert requires, and that no other mode has.
UPSERT_KEYS = {"keys": "the columns that identify a row", "sequence": "the column that orders versions of a row"}
SQL_TYPES = (
    "string|varchar|char|binary|boolean|tinyint|byte|smallint|short|int|integer|bigint|long|float|real|double|"
    "decimal|dec|numeric|date|timestamp|timestamp_ntz|timestamp_ltz|interval|array|map|struct|variant|void"
)
# The start of a schema in SQL syntax: a struct, or the name and the type of the first column.
DDL_START = re.compile(rf"\s*(?:struct\s*<|(?:`[^`]+`|\w+)(?:\s*:\s*|\s+)(?:{SQL_TYPES})\b)", re.IGNORECASE)

# The errors of Python's `re` for patterns that are invalid in Java too. Spark matches the patterns with Java.
COMMON_PATTERN_ERRORS = (
    "missing ), unterminated",
    "unbalanced parenthesis",
    "unterminated character set",
    "nothing to repeat",
)

# Key path, message, fix. The path starts at the value that a function checks, such as a step or an input.
PathProblem = tuple[KeyPath, str, str]


def check_steps(drafts: list[PipelineDraft]) -> list[Problem]:
    """Return the problems of all steps that can be detected without other files."""
    problems = []
    for draft in drafts:
        for step in draft.steps.values():
            for step_path, message, fix in _check_step(step):
                path = ("steps", step.name, *step_path)
                problems.append(Problem(draft.locations.where(*path), f"{describe_path(path)}: {message}", fix))
    return problems


def _check_step(step: Step) -> Iterator[PathProblem]:
    for name, read in step.reads.items():
        for path, message, fix in _check_read(read):
            yield ("reads", name, *path), message, fix
    for index, sink in enumerate(step.writes):
        for path, message, fix in (*_check_sink(sink), *_check_sink_of_step(step, sink)):
            yield ("writes", index, *path), message, fix
    yield from _check_rules(step.expect)
    if not step.writes:
        yield ("writes",), "a step must write something", "add a table: {table: …}"
    if all(read.static and read.table for read in step.reads.values()):
        yield ("reads",), "a step must read at least one stream", "read one input without static: true"
    if step.transform is None and len(step.reads) > 1:
        fix = "add a transform, or keep one input"
        yield ("reads",), f"a step without a transform must have one input, not {len(step.reads)}", fix
    if step.transform is None and step.with_:
        yield ("with",), "the step has no transform to pass these settings to", "add a transform, or remove 'with'"
    if step.row_wise and (step.transform is None or deduplicates(step)):
        yield ("row_wise",), "applies only to custom transforms that do not deduplicate", "remove row_wise"
    if step.deduplicates and step.transform is None:
        yield ("deduplicates",), "the step has no transform", "add a transform, or remove deduplicates"
    elif step.deduplicates and not isinstance(step.with_.get("keys"), list):
        fix = "add with: {keys: […]}, which the transform must use"
        yield ("deduplicates",), "needs the columns that identify a row, as the transform's setting 'keys'", fix


def _check_read(read: Read) -> Iterator[PathProblem]:
    if (read.source is None) == (read.table is None):
        yield (), "must read exactly one of source, table", "write {source: …} or {table: …}"
        return
    if read.source is not None:
        for key in ("static", "changes"):
            if getattr(read, key):
                fix = f"remove {key}, or load the source in a separate bronze step"
                yield (key,), "applies to tables, not to sources", fix
    else:
        for key in SOURCE_KEYS:
            if key in read.model_fields_set:
                yaml_key = key.rstrip("_")  # schema_ -> schema
                message = "applies to sources: the rows of a table were checked when they were written"
                yield (yaml_key,), message, f"remove {yaml_key}"
    if read.table and read.static and read.changes:
        yield ("changes",), "a table is read as static or as changes, not both", "keep one of static, changes"
    if read.static and read.watermark:
        yield ("watermark",), "a static input has no watermark", "remove watermark: only streams have one"
    if read.schema_ is not None and read.infer:
        yield ("infer",), "a schema is declared or inferred, not both", "keep one of schema, infer"
    if read.schema_ is not None and not (read.schema_path or DDL_START.match(read.schema_)):
        fix = "write module:NAME of a StructType, or columns and types: 'id STRING, amount DOUBLE'"
        yield ("schema",), f"'{read.schema_}' is neither an import path nor a list of columns", fix
    yield from _check_rules(read.expect)
    for index, rule in enumerate(read.expect):
        for key in BATCH_EXPECTATIONS:
            if getattr(rule, key) is not None:
                message = "compares the rows of a batch, but the rows of an input are checked one by one"
                yield ("expect", index, key), message, "move it to the expect of the step"


def _check_sink(sink: Sink) -> Iterator[PathProblem]:
    """Yield the problems of a sink that do not depend on its step."""
    if len(sink.kinds) != 1:
        fix = "keep one of them; write several sinks as a list"
        yield (), f"must write to exactly one of {', '.join(SINKS)}", fix
        return
    model = SINKS[sink.kind]
    for key in Sink.model_fields:
        kinds_with_key = [other.plural for other in SINKS.values() if key in other.model_fields]
        if key in sink.model_fields_set and kinds_with_key and key not in model.model_fields:
            yield (key,), f"applies to {' and '.join(kinds_with_key)}, not to {model.label}", f"remove {key}"
    if sink.kind == "table":
        yield from _check_table_sink(sink)


def _check_table_sink(sink: Sink) -> Iterator[PathProblem]:
    if sink.mode == "upsert":
        for key, description in UPSERT_KEYS.items():
            if not getattr(sink, key):
                yield ("mode",), f"{sink.mode} needs '{key}'", f"add {key}: {description}"
        if sink.options:
            yield ("options",), "an upsert has no options", "remove options"
    else:
        for key in UPSERT_KEYS:
            if key in sink.model_fields_set:
                yield (key,), f"does not apply to mode {sink.mode}", f"remove {key}, or write mode: upsert"
    if sink.partition_by and sink.cluster_by:
        fix = "keep one of partition_by, cluster_by"
        yield ("cluster_by",), "a table is partitioned or clustered, not both", fix


def _check_sink_of_step(step: Step, sink: Sink) -> Iterator[PathProblem]:
    """Yield the settings of the step that the sink does not support."""
    if not sink.kinds:  # `_check_sink` reports this
        return
    model = SINKS[sink.kind]
    if model.native_outputs:  # Spark writes the sink without the batch writer
        if len(step.writes) > 1:
            yield (sink.kind,), f"{model.label} must be its step's only sink", "write it in a separate step"
        for key in ("expect", "row_wise"):
            if getattr(step, key):
                fix = f"write a table here, and use the {sink.kind} sink in a separate step that reads the table"
                yield (sink.kind,), f"{model.label} cannot be written in batches, but '{key}' requires batches", fix
        if step.output not in model.native_outputs:
            fix = f"write output: {' or '.join(model.native_outputs)}, or use another sink"
            yield (sink.kind,), f"{model.label} cannot be written with output {step.output}", fix
    if sink.kind == "table" and sink.mode == "append" and step.output == "update":
        fix = "write mode: upsert with keys and sequence, so that newer rows replace older ones"
        message = "output update writes changed rows again, and mode append would keep their old versions"
        yield ("table",), message, fix


def _check_rules(rules: tuple[Rule, ...]) -> Iterator[PathProblem]:
    for index, rule in enumerate(rules):
        kinds = [kind for kind in EXPECTATIONS if getattr(rule, kind)]
        if len(kinds) != 1:
            fix = "write a separate entry for each expectation"
            yield ("expect", index), f"must have exactly one of {', '.join(EXPECTATIONS)}", fix
        for column, pattern in (rule.matches or {}).items():
            try:
                re.compile(pattern)
            except re.error as error:
                # Java's syntax differs from Python's. Only patterns that are invalid in both are reported here; a run
                # validates all patterns with Java.
                if error.msg.startswith(COMMON_PATTERN_ERRORS):
                    message = f"{pattern!r} is not a valid regular expression: {error.msg}"
                    yield ("expect", index, "matches", column), message, "correct the regular expression"
