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


class SinkWriter(NamedTuple):
    """A step, and one of the sinks that it writes."""

    draft: PipelineDraft  # the pipeline file as read, valid or not
    step: str  # the name of the step
    sink_index: int  # in the step's `writes`


def check_tables(drafts: list[PipelineDraft], environment_draft: EnvironmentDraft) -> list[Problem]:
    """Return the problems of the tables, folders and memory sinks that the steps of all pipelines use."""
    writers = _table_writers(drafts)
    quarantines = {
        f"{table}{QUARANTINE_SUFFIX}": writer for table, writer in _quarantine_owners(drafts, environment_draft)
    }
    problems = [*_check_table_writers(drafts), *_check_folders_and_memory(drafts, environment_draft)]
    problems += _check_quarantine_names(writers, quarantines)
    may_exist = _existence_test(drafts, environment_draft)
    for draft in drafts:
        for step in draft.steps.values():
            problems += _check_reads(draft, step, writers, quarantines, may_exist)
    return problems + list(_check_cycles(drafts, writers | quarantines))


def _table_writers(drafts: list[PipelineDraft]) -> dict[str, SinkWriter]:
    """Return the first writer of each table, by the table's name as written.

    Names that differ only in case are the same table, as in catalogs. They have the same first writer.
    """
    first_writers: dict[str, SinkWriter] = {}  # by name in lower case
    writers: dict[str, SinkWriter] = {}
    for draft in drafts:
        for step, sink_index, table in draft.tables:
            writers[table] = first_writers.setdefault(table.lower(), SinkWriter(draft, step, sink_index))
    return writers


def _check_table_writers(drafts: list[PipelineDraft]) -> Iterator[Problem]:
    """Yield a problem for each sink that writes a table that an earlier sink writes."""
    writers = _table_writers(drafts)
    for draft in drafts:
        for step, sink_index, table in draft.tables:
            first = writers[table]
            writer = SinkWriter(draft, step, sink_index)
            if first != writer:
                message = f"table '{table}' is written by {_format_step(first, draft)} and by step '{step}'"
                if _is_same_step(first, writer):
                    message = f"table '{table}' is written twice by step '{step}'"
                yield Problem(_where(writer), message, f"write to different tables; the first is at {_where(first)}")


def _check_folders_and_memory(drafts: list[PipelineDraft], environment_draft: EnvironmentDraft) -> Iterator[Problem]:
    """Yield a problem for each sink that writes a folder or memory table that an earlier step writes.

    Spark keeps one list of a folder's files, by batch number. If two steps wrote the same folder, each would hide the
    other's rows. Folders with different names are the same if the environment gives them the same location.
    """
    folders = environment_draft.environment.folders if environment_draft.environment else {}
    first_writers: dict[tuple[str, str], SinkWriter] = {}
    for draft in drafts:
        for step in draft.steps.values():
            for sink_index, sink in enumerate(step.writes):
                names: dict[str, str | None] = {"folder": sink.folder, "memory": sink.memory}
                for kind, name in names.items():
                    if name is None:
                        continue
                    location = folders.get(name, name).rstrip("/") if kind == "folder" else name
                    writer = SinkWriter(draft, step.name, sink_index)
                    first = first_writers.setdefault((kind, location), writer)
                    if not _is_same_step(first, writer):
                        both_steps = f"{_format_step(first, draft)} and by step '{step.name}'"
                        noun = "folder" if kind == "folder" else "memory table"
                        fix = f"write to a different {noun}; the first is at {_where(first, kind)}"
                        yield Problem(_where(writer, kind), f"{kind} '{name}' is written by {both_steps}", fix)


def _quarantine_owners(
    drafts: list[PipelineDraft], environment_draft: EnvironmentDraft
) -> Iterator[tuple[str, SinkWriter]]:
    """Yield the tables that have a quarantine, each with its writer; none if the environment is invalid.

    If a step quarantines rows, the first table that the step writes has a quarantine.
    """
    if environment_draft.environment is None:
        return
    for draft in drafts:
        for step in draft.steps.values():
            if has_quarantine(step, environment_draft.environment):
                tables = [(index, sink.table) for index, sink in enumerate(step.writes) if sink.table]
                if tables:
                    sink_index, table = tables[0]
                    yield table, SinkWriter(draft, step.name, sink_index)


def _existence_test(drafts: list[PipelineDraft], environment_draft: EnvironmentDraft) -> Callable[[str], bool]:
    """Return a function that tests whether a table may exist although no step is known to write it.

    Any table may exist if a pipeline file could not be read completely. Otherwise, only the quarantine of an invalid
    step may exist, or any quarantine if the environment is invalid.
    """
    is_any_incomplete = any(draft.is_incomplete for draft in drafts)
    possible_quarantines = {
        f"{table}{QUARANTINE_SUFFIX}"
        for draft in drafts
        for step, _, table in draft.tables
        if environment_draft.environment is None or step not in draft.steps
    }
    return lambda table: is_any_incomplete or table in possible_quarantines


def _check_quarantine_names(writers: dict[str, SinkWriter], quarantines: dict[str, SinkWriter]) -> Iterator[Problem]:
    """Yield a problem for each table that has the name of another table's quarantine."""
    for table, writer in writers.items():
        if table in quarantines:
            owner = _format_step(quarantines[table], writer.draft)
            message = f"step '{writer.step}' writes '{table}', which is the quarantine of {owner}"
            yield Problem(_where(writer), message, "give the table another name")


def _check_reads(
    draft: PipelineDraft,
    step: Step,
    writers: dict[str, SinkWriter],
    quarantines: dict[str, SinkWriter],
    may_exist: Callable[[str], bool],
) -> Iterator[Problem]:
    """Yield a problem for each input of a step that reads an unknown table, or reads a table in the wrong way.

    A table whose rows change cannot be read as a stream of rows. An append-only table has no updates or deletions to
    read.
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


def _rewriting_setting(writer: SinkWriter) -> str:
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


def _check_cycles(drafts: list[PipelineDraft], writers: dict[str, SinkWriter]) -> Iterator[Problem]:
    """Yield a problem for one input of each cycle of steps that read each other's tables.

    `writers` has the writers of tables and of quarantines.
    """
    # reader step → {writer step: name of the input}. A step is a pair of pipeline and step name.
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
        # `cycle` is ordered from writer to reader, so its first step reads a table of its last step.
        pipeline, reader = cycle[0]
        name = reads_from[cycle[0]].pop(cycle[-1])  # without this input, the next search finds another cycle
        where = drafts_by_name[pipeline].locations.where("steps", reader, "reads", name)
        steps = " → ".join(f"'{step}'" for _, step in [*cycle, cycle[0]])
        message = f"steps read each other's tables in a cycle: {steps}"
        if len(cycle) == 1:
            message = f"step '{reader}' reads the table that it writes"
        yield Problem(where, message, "read another table in one of these steps")


def _is_same_step(writer: SinkWriter, other: SinkWriter) -> bool:
    return (writer.draft, writer.step) == (other.draft, other.step)


def _format_step(writer: SinkWriter, current: PipelineDraft) -> str:
    """Return the step as text, with the name of its pipeline unless this is the current pipeline."""
    return f"step '{writer.step}'" + ("" if writer.draft is current else f" of pipeline '{writer.draft.name}'")


def _where(writer: SinkWriter, kind: str = "table") -> str:
    """Return file:line of the sink. `kind` is the sink's kind, which is also its key, e.g. `table: orders`."""
    return writer.draft.locations.where("steps", writer.step, "writes", writer.sink_index, kind)
