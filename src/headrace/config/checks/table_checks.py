"""Check the tables, folders and memory sinks that several steps use: their writers, their readers, and cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headrace.config.cycles import find_cycle
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.expectation_scope import QUARANTINE_SUFFIX, has_quarantine
from headrace.config.locations import fix_for_unknown_name
from headrace.config.models import Step
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem


class Writer(NamedTuple):
    """A sink of a step: the pipeline's draft, the name of the step, and the index of the sink in `writes`."""

    draft: PipelineDraft
    step: str
    sink_index: int


def check_tables(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> list[Problem]:
    """Return the problems of the tables, folders and memory sinks that the steps of all pipelines use."""
    writers = _table_writers(drafts)
    quarantines = {f"{table}{QUARANTINE_SUFFIX}": writer for table, writer in _quarantine_owners(drafts, environment)}
    problems = [*_check_table_writers(drafts), *_check_folders_and_memory(drafts, environment)]
    problems += _check_quarantine_names(writers, quarantines)
    may_exist = _existence_test(drafts, environment)
    for draft in drafts:
        for step in draft.steps.values():
            problems += _check_reads(draft, step, writers, quarantines, may_exist)
    return problems + list(_check_cycles(drafts, writers | quarantines))


def _table_writers(drafts: list[PipelineDraft]) -> dict[str, Writer]:
    """Return the first writer of each table, by the table's name as written.

    Names that differ only in case are the same table, as in catalogs. They have the same first writer.
    """
    first_writers: dict[str, Writer] = {}  # by name in lower case
    writers: dict[str, Writer] = {}
    for draft in drafts:
        for step, sink_index, table in draft.tables:
            writers[table] = first_writers.setdefault(table.lower(), Writer(draft, step, sink_index))
    return writers


def _check_table_writers(drafts: list[PipelineDraft]) -> Iterator[Problem]:
    """Yield each sink that writes a table that an earlier sink writes."""
    writers = _table_writers(drafts)
    for draft in drafts:
        for step, sink_index, table in draft.tables:
            first = writers[table]
            writer = Writer(draft, step, sink_index)
            if first != writer:
                message = f"table '{table}' is written by {_format_step(first, draft)} and by step '{step}'"
                if _is_same_step(first, writer):
                    message = f"table '{table}' is written twice by step '{step}'"
                yield Problem(_where(writer), message, f"write to different tables; the first is at {_where(first)}")


def _check_folders_and_memory(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield the folders and memory sinks that several steps write.

    Spark keeps one list of a folder's files, by batch number. If two steps wrote the same folder, each would hide the
    other's rows. Folders with different names are the same if the environment gives them the same location.
    """
    folders = environment.environment.folders if environment.environment else {}
    first_writers: dict[tuple[str, str], Writer] = {}
    for draft in drafts:
        for step in draft.steps.values():
            for sink_index, sink in enumerate(step.writes):
                for kind, name in (("folder", sink.folder), ("memory", sink.memory)):
                    if name is None:
                        continue
                    location = folders.get(name, name).rstrip("/") if kind == "folder" else name
                    writer = Writer(draft, step.name, sink_index)
                    first = first_writers.setdefault((kind, location), writer)
                    if not _is_same_step(first, writer):
                        both_steps = f"{_format_step(first, draft)} and by step '{step.name}'"
                        noun = "folder" if kind == "folder" else "memory table"
                        fix = f"write to a different {noun}; the first is at {_where(first, kind)}"
                        yield Problem(_where(writer, kind), f"{kind} '{name}' is written by {both_steps}", fix)


def _quarantine_owners(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Iterator[tuple[str, Writer]]:
    """Yield the tables that have a quarantine, each with its writer; none if the environment is invalid.

    If a step quarantines rows, the first table that the step writes has a quarantine.
    """
    if environment.environment is None:
        return
    for draft in drafts:
        for step in draft.steps.values():
            if has_quarantine(step, environment.environment):
                tables = [(index, sink.table) for index, sink in enumerate(step.writes) if sink.table]
                for sink_index, table in tables[:1]:
                    yield table, Writer(draft, step.name, sink_index)


def _existence_test(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Callable[[str], bool]:
    """Return a function that tests whether a table may exist although no step is known to write it.

    Any table may exist if a pipeline file could not be read completely. Otherwise only a quarantine may exist, if it is
    unknown whether the step quarantines rows: the step is invalid, or the environment is.
    """
    is_any_incomplete = any(draft.is_incomplete for draft in drafts)
    possible_quarantines = {
        f"{table}{QUARANTINE_SUFFIX}"
        for draft in drafts
        for step, _, table in draft.tables
        if environment.environment is None or step not in draft.steps
    }
    return lambda table: is_any_incomplete or table in possible_quarantines


def _check_quarantine_names(writers: dict[str, Writer], quarantines: dict[str, Writer]) -> Iterator[Problem]:
    """Yield the tables that have the name of another table's quarantine."""
    for table, writer in writers.items():
        if table in quarantines:
            owner = _format_step(quarantines[table], writer.draft)
            message = f"step '{writer.step}' writes '{table}', which is the quarantine of {owner}"
            yield Problem(_where(writer), message, "give the table another name")


def _check_reads(
    draft: PipelineDraft,
    step: Step,
    writers: dict[str, Writer],
    quarantines: dict[str, Writer],
    may_exist: Callable[[str], bool],
) -> Iterator[Problem]:
    """Yield the inputs of a step that read an unknown table, and those that read a table in the wrong way.

    A table whose rows change cannot be read as a stream of rows. An append-only table has no changes to read.
    """
    for name, read in step.reads.items():
        if read.table is None:
            continue
        where = draft.locations.where("steps", step.name, "reads", name, "table")
        if read.table not in writers:
            if read.table not in quarantines and not may_exist(read.table):
                message = f"step '{step.name}' reads unknown table '{read.table}'"
                fix = "write the table in a step, or declare external data as a source"
                yield Problem(where, message, fix_for_unknown_name(read.table, [*writers, *quarantines], fix))
            continue
        rewriting_setting = _rewriting_setting(writers[read.table])
        if rewriting_setting and not read.static and not read.changes:
            message = f"step '{step.name}' reads '{read.table}' as a stream, but {rewriting_setting} changes its rows"
            yield Problem(where, message, "read it with static: true, or read its changes with changes: true")
        elif read.changes and not rewriting_setting:
            message = f"step '{step.name}' reads the changes of '{read.table}', which is append-only"
            changes_where = draft.locations.where("steps", step.name, "reads", name, "changes")
            yield Problem(changes_where, message, "remove changes: true; every change is a new row")


def _rewriting_setting(writer: Writer) -> str:
    """Return the setting with which a step changes existing rows of its table.

    Return an empty string if the step only appends rows, or if the step is invalid.
    """
    step = writer.draft.steps.get(writer.step)
    if step is None:
        return ""
    sink = step.writes[writer.sink_index]
    if not step.rewrites(sink):
        return ""
    return f"mode {sink.mode}" if sink.mode != "append" else "output complete"


def _check_cycles(drafts: list[PipelineDraft], writers: dict[str, Writer]) -> Iterator[Problem]:
    """Yield one input of each cycle of steps that read each other's tables. `writers` includes those of quarantines."""
    # The steps whose tables each step reads, with the name of the input. A step is a pair of pipeline and step name.
    reads_from: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for draft in drafts:
        for step in draft.steps.values():
            inputs = reads_from.setdefault((draft.name, step.name), {})
            for name, read in step.reads.items():
                if read.table in writers:
                    writer = writers[str(read.table)]
                    inputs[(writer.draft.name, writer.step)] = name
    drafts_by_name = {draft.name: draft for draft in drafts}
    while cycle := find_cycle(reads_from):
        pipeline, reader = cycle[0]  # this step reads a table of the last step in the cycle
        name = reads_from[cycle[0]].pop(cycle[-1])  # without this input, the next search finds another cycle
        where = drafts_by_name[pipeline].locations.where("steps", reader, "reads", name)
        steps = " → ".join(f"'{step}'" for _, step in [*cycle, cycle[0]])
        message = f"steps read each other's tables in a cycle: {steps}"
        if len(cycle) == 1:
            message = f"step '{reader}' reads the table that it writes"
        yield Problem(where, message, "read another table in one of these steps")


def _is_same_step(writer: Writer, other: Writer) -> bool:
    return (writer.draft, writer.step) == (other.draft, other.step)


def _format_step(writer: Writer, current: PipelineDraft) -> str:
    """Return the step as text, with the name of its pipeline unless this is the current pipeline."""
    return f"step '{writer.step}'" + ("" if writer.draft is current else f" of pipeline '{writer.draft.name}'")


def _where(writer: Writer, kind: str = "table") -> str:
    """Return file:line of the sink. `kind` is the sink's kind, which is also the key that names what it writes."""
    return writer.draft.locations.where("steps", writer.step, "writes", writer.sink_index, kind)
