"""Each step on its own: keys that exclude or need each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.config.expectation_scope import DEDUPLICATE
from headrace.config.locations import KeyPath, describe_path
from headrace.config.models import Read, Rule, Sink, Step
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

TESTS = ("not_null", "between", "one_of", "matches", "rule")
SINKS = ("table", "topic", "folder", "console", "memory")
ALONE = {"folder": ("append",), "memory": ("append", "complete")}  # what such a sink, a step's only one, can be told
ONLY_SOURCES = ("schema_", "infer", "max_future", "expect")
TYPES = (
    "string|varchar|char|binary|boolean|tinyint|byte|smallint|short|int|integer|bigint|long|float|real|double|"
    "decimal|dec|numeric|date|timestamp|timestamp_ntz|timestamp_ltz|interval|array|map|struct|variant|void"
)
DDL = re.compile(rf"\s*(?:struct\s*<|(?:`[^`]+`|\w+)(?:\s*:\s*|\s+)(?:{TYPES})\b)", re.IGNORECASE)

WRONG_IN_BOTH = ("missing ), unterminated", "unbalanced parenthesis", "unterminated character set", "nothing to repeat")

Found = Iterator[tuple[KeyPath, str, str]]


def check_steps(drafts: list[Draft]) -> list[Problem]:
    """The problems of all steps that can be seen without any other file."""
    problems = []
    for draft in drafts:
        for step in draft.steps.values():
            for path, message, fix in _step(step):
                at = ("steps", step.name, *path)
                problems.append(Problem(draft.locations.where(*at), f"{describe_path(at)}: {message}", fix))
    return problems


def _step(step: Step) -> Found:
    for name, read in step.reads.items():
        for path, message, fix in _read(read):
            yield ("reads", name, *path), message, fix
    for at, sink in enumerate(step.writes):
        for path, message, fix in _sink(sink):
            yield ("writes", at, *path), message, fix
        for path, message, fix in _fit(step, sink):
            yield ("writes", at, *path), message, fix
    for path, message, fix in _rules(step.expect):
        yield path, message, fix
    if not step.writes:
        yield ("writes",), "a step must write something", "name a table: {table: …}"
    if all(read.static and read.table for read in step.reads.values()):
        yield ("reads",), "a step must read at least one stream", "read one input without static: true"
    if step.transform is None and len(step.reads) > 1:
        fix = "name a transform, or keep one input"
        yield ("reads",), f"a step without a transform passes one input on, not {len(step.reads)}", fix
    if step.transform is None and step.with_:
        yield ("with",), "there is no transform that takes settings", "name a transform, or take 'with' out"
    if step.row_wise and step.transform in (None, DEDUPLICATE):
        yield ("row_wise",), "says something of a transform of your own only", "take it out"


def _read(read: Read) -> Found:
    if (read.source is None) == (read.table is None):
        yield (), "must read exactly one of source, table", "write {source: …} or {table: …}"
        return
    if read.source is not None:
        for key in ("static", "changes"):
            if getattr(read, key):
                yield (
                    (key,),
                    "is for tables, not for sources",
                    "take it out, or land the source in a bronze step first",
                )
    else:
        for key in ONLY_SOURCES:
            if key in read.model_fields_set:
                written = key.rstrip("_")
                yield (written,), "is for sources: a table was judged where it was written", "take it out"
    if read.table and read.static and read.changes:
        yield (
            ("changes",),
            "a table is read static or as its changes, not both",
            "keep one of static, changes",
        )
    if read.static and read.watermark:
        fix = "take it out: only streams have one"
        yield ("watermark",), "an input that is static has no watermark", fix
    if read.schema_ is not None and read.infer:
        yield ("infer",), "the schema is given and inferred", "keep one of schema, infer"
    if read.schema_ is not None and not (read.schema_path or DDL.match(read.schema_)):
        fix = "write module:NAME of a StructType, or columns and types: 'id STRING, amount DOUBLE'"
        yield ("schema",), f"'{read.schema_}' is neither an import path nor a list of columns", fix
    yield from _rules(read.expect)


def _sink(sink: Sink) -> Found:
    kinds = [kind for kind in SINKS if getattr(sink, kind)]
    if len(kinds) != 1:
        fix = "write one of them; several sinks are a list"
        yield (), f"must write to exactly one of {', '.join(SINKS)}", fix
        return
    written = sink.model_fields_set
    if kinds != ["table"]:
        for key in ("mode", "keys", "sequence", "cluster_by"):
            if key in written:
                yield (key,), f"is for tables, not for {_a(kinds[0])}", "take it out"
    elif sink.mode == "upsert":
        for key, what in (
            ("keys", "the columns that name a row"),
            ("sequence", "the column that says which is newer"),
        ):
            if not getattr(sink, key):
                yield ("mode",), f"{sink.mode} needs '{key}'", f"add {key}: {what}"
        if sink.options:
            yield ("options",), "a merge takes no options", "take them out"
    else:
        for key in ("keys", "sequence"):
            if key in written:
                yield (key,), f"has no meaning with mode {sink.mode}", "take it out, or write mode: upsert"
    if "partition_by" in written and kinds[0] not in ("table", "folder"):
        yield ("partition_by",), f"is for tables and folders, not for {_a(kinds[0])}", "take it out"
    if sink.partition_by and sink.cluster_by:
        yield (
            ("cluster_by",),
            "a table is partitioned or clustered, not both",
            "keep one of partition_by, cluster_by",
        )
    if "format" in written and kinds != ["folder"]:
        yield ("format",), f"is for folders, not for {_a(kinds[0])}", "take it out"


def _a(kind: str) -> str:
    return kind if kind == "memory" else f"a {kind}"


def _fit(step: Step, sink: Sink) -> Found:
    """What a sink cannot do for this step."""
    kind = next((kind for kind in SINKS if getattr(sink, kind)), "")
    if kind in ALONE:
        if len(step.writes) > 1:
            yield (kind,), f"{_a(kind)} must be a step's only sink", "give it a step of its own"
        for key in ("expect", "row_wise"):
            if getattr(step, key):
                fix = "write a table, and the rest in a step that reads it"
                yield (kind,), f"{_a(kind)} takes a stream as it is, and '{key}' works on its batches", fix
        if step.output not in ALONE[kind]:
            fix = f"write output: {' or '.join(ALONE[kind])}, or another sink"
            yield (kind,), f"{_a(kind)} cannot be written with output {step.output}", fix
    if kind == "table" and sink.mode == "append" and step.output == "update":
        fix = "write mode: upsert with keys and sequence, so that a row is written over its older one"
        yield ("table",), "output update tells a row again when it changes, and mode append keeps them all", fix


def _rules(rules: tuple[Rule, ...]) -> Found:
    for at, rule in enumerate(rules):
        tests = [test for test in TESTS if getattr(rule, test)]
        if len(tests) != 1:
            fix = "write one entry for each test"
            yield ("expect", at), f"must hold exactly one of {', '.join(TESTS)}", fix
        for column, pattern in (rule.matches or {}).items():
            try:
                re.compile(pattern)
            except re.error as error:
                # Java's expressions are not Python's: only what neither reads is wrong here; a run asks Java.
                if error.msg.startswith(WRONG_IN_BOTH):
                    fix = "correct the regular expression"
                    yield ("expect", at, "matches", column), f"{pattern!r} cannot be read: {error.msg}", fix
