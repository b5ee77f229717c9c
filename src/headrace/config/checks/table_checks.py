"""Check the tables, folders and memory sinks that steps share: their writers, their readers, and cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.config.cycles import find_cycle
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.expectation_scope import QUARANTINE_SUFFIX, has_quarantine
from headrace.config.locations import fix_for_unknown_name
from headrace.config.models import Step
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem

Writer = tuple[PipelineDraft, str, int]  # the pipeline, the step, the index of the sink


def check_tables(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> list[Problem]:
    """Return the problems between the writers and readers of tables, across all pipelines."""
    writers = _table_writers(drafts)
    quarantines = {f"{table}{QUARANTINE_SUFFIX}": writer for table, writer in _quarantining_steps(drafts, environment)}
    problems = [*_check_table_writers(drafts), *_check_folders_and_memory(drafts, environment)]
    problems += _check_quarantine_names(writers, quarantines)
    may_exist = _may_exist(drafts, environment)
    for draft in drafts:
        for step in draft.steps.values():
            problems += _check_reads(draft, step, writers, quarantines, may_exist)
    return problems + list(_check_cycles(drafts, writers | quarantines))


def _table_writers(drafts: list[PipelineDraft]) -> dict[str, Writer]:
    """Return the first writer of each table. Names that differ only in case are the same table, as in catalogs."""
    first: dict[str, Writer] = {}
    writers: dict[str, Writer] = {}
    for draft in drafts:
        for step, number, table in draft.tables:
            writers.setdefault(table, first.setdefault(table.lower(), (draft, step, number)))
    return writers


def _check_table_writers(drafts: list[PipelineDraft]) -> Iterator[Problem]:
    writers = _table_writers(drafts)
    for draft in drafts:
        for step, number, table in draft.tables:
            first = writers[table]
            if first != (draft, step, number):
                where = draft.locations.where("steps", step, "writes", number, "table")
                message = f"table '{table}' is written by {_format_step(first, draft)} and by step '{step}'"
                if first[:2] == (draft, step):
                    message = f"table '{table}' is written twice by step '{step}'"
                yield Problem(where, message, f"write to different tables; the first is at {_where(first)}")


def _check_folders_and_memory(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield the folders and memory sinks with two writers.

    Two steps with the same folder hide each other's rows: Spark keeps one list of the folder's files, by batch number.
    """
    folders = environment.environment.folders if environment.environment else {}
    seen: dict[tuple[str, str], Writer] = {}
    for draft in drafts:
        for step in draft.steps.values():
            for number, sink in enumerate(step.writes):
                for kind, name in (("folder", sink.folder), ("memory", sink.memory)):
                    if name is None:
                        continue
                    target = folders.get(name, name).rstrip("/") if kind == "folder" else name
                    first = seen.setdefault((kind, target), (draft, step.name, number))
                    if first[:2] != (draft, step.name):
                        where = draft.locations.where("steps", step.name, "writes", number, kind)
                        writers = f"{_format_step(first, draft)} and by step '{step.name}'"
                        other = "folder" if kind == "folder" else "memory table"
                        fix = f"write to a different {other}; the first is at {_where(first, kind)}"
                        yield Problem(where, f"{kind} '{name}' is written by {writers}", fix)


def _quarantining_steps(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Iterator[tuple[str, Writer]]:
    """Yield the tables that have a quarantine: of each step that quarantines rows, the first table."""
    if environment.environment is None:
        return
    for draft in drafts:
        for step in draft.steps.values():
            if has_quarantine(step, environment.environment):
                number = next((number for number, sink in enumerate(step.writes) if sink.table), None)
                if number is not None:
                    yield str(step.writes[number].table), (draft, step.name, number)


def _may_exist(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Callable[[str], bool]:
    """Return a predicate: whether a table may exist, given that malformed files may declare more than was read."""
    is_anything_unread = any(draft.is_incomplete for draft in drafts)
    possible_quarantines = {
        f"{table}{QUARANTINE_SUFFIX}"
        for draft in drafts
        for step, _, table in draft.tables
        if environment.environment is None or step not in draft.steps
    }
    return lambda table: is_anything_unread or table in possible_quarantines


def _check_quarantine_names(writers: dict[str, Writer], quarantines: dict[str, Writer]) -> Iterator[Problem]:
    for table, (draft, step, number) in writers.items():
        if table in quarantines:
            owner = _format_step(quarantines[table], draft)
            message = f"step '{step}' writes '{table}', which is the quarantine of {owner}"
            where = draft.locations.where("steps", step, "writes", number, "table")
            yield Problem(where, message, "give the table another name")


def _check_reads(
    draft: PipelineDraft,
    step: Step,
    writers: dict[str, Writer],
    quarantines: dict[str, Writer],
    may_exist: Callable[[str], bool],
) -> Iterator[Problem]:
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
        rewriting = _rewriting_setting(writers[read.table])
        if rewriting and not read.static and not read.changes:
            message = f"step '{step.name}' reads '{read.table}' as a stream, but {rewriting} changes its rows"
            yield Problem(where, message, "read it with static: true, or read its changes with changes: true")
        elif read.changes and not rewriting:
            message = f"step '{step.name}' reads the changes of '{read.table}', which is append-only"
            where = draft.locations.where("steps", step.name, "reads", name, "changes")
            yield Problem(where, message, "remove changes: true; every change is a new row")


def _rewriting_setting(writer: Writer) -> str:
    """Return the setting by which a step changes rows of its table; empty if it only appends."""
    draft, name, number = writer
    step = draft.steps.get(name)
    if step is None:
        return ""
    sink = step.writes[number]
    if not step.rewrites(sink):
        return ""
    return f"mode {sink.mode}" if sink.mode != "append" else "output complete"


def _check_cycles(drafts: list[PipelineDraft], writers: dict[str, Writer]) -> Iterator[Problem]:
    reads_from: dict[tuple[str, str], dict[tuple[str, str], str]] = {}  # step -> steps it reads from -> input
    for draft in drafts:
        for step in draft.steps.values():
            inputs = reads_from.setdefault((draft.name, step.name), {})
            for name, read in step.reads.items():
                if read.table in writers:
                    writer, writing_step, _ = writers[str(read.table)]
                    inputs[(writer.name, writing_step)] = name
    files = {draft.name: draft for draft in drafts}
    while cycle := find_cycle(reads_from):
        pipeline, reader = cycle[0]
        name = reads_from[cycle[0]].pop(cycle[-1])
        where = files[pipeline].locations.where("steps", reader, "reads", name)
        steps = " → ".join(f"'{step}'" for _, step in [*cycle, cycle[0]])
        message = f"steps read each other's tables in a cycle: {steps}"
        if len(cycle) == 1:
            message = f"step '{reader}' reads the table that it writes"
        yield Problem(where, message, "read another table in one of these steps")


def _format_step(writer: Writer, seen_from: PipelineDraft) -> str:
    draft, step, _ = writer
    return f"step '{step}'" + ("" if draft is seen_from else f" of pipeline '{draft.name}'")


def _where(writer: Writer, kind: str = "table") -> str:
    draft, step, number = writer
    return draft.locations.where("steps", step, "writes", number, kind)
