"""Tables and other places between steps: who writes them, who reads them, whether they can be read as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.config.cycles import find_cycle
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.expectation_scope import QUARANTINE_SUFFIX, has_quarantine
from headrace.config.locations import closest_match
from headrace.config.models import Step
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

Owner = tuple[Draft, str, int]  # the pipeline, the step, which of its sinks


def check_tables(drafts: list[Draft], environment: EnvironmentDraft) -> list[Problem]:
    """The problems that lie between a table's writer and its readers, in all pipelines together."""
    writers: dict[str, Owner] = {}
    problems = [*_two_writers(drafts, writers), *_one_place(drafts, environment)]
    quarantines = {f"{table}{QUARANTINE_SUFFIX}": owner for table, owner in _judged(drafts, environment)}
    problems += _collisions(writers, quarantines)
    may_be_there = _may_be_there(drafts, environment)
    for draft in drafts:
        for step in draft.steps.values():
            problems += _reads(draft, step, writers, quarantines, may_be_there)
    return problems + list(_cycles(drafts, writers | quarantines))


def _two_writers(drafts: list[Draft], writers: dict[str, Owner]) -> Iterator[Problem]:
    seen: dict[str, Owner] = {}
    for draft in drafts:
        for step, at, table in draft.tables:
            # Catalogs do not tell upper case from lower case.
            first = seen.setdefault(table.lower(), (draft, step, at))
            writers.setdefault(table, first)
            if first != (draft, step, at):
                where = draft.locations.where("steps", step, "writes", at, "table")
                message = f"table '{table}' is written by {_called(first, draft)} and by step '{step}'"
                if first[:2] == (draft, step):
                    message = f"table '{table}' is written twice by step '{step}'"
                fix = f"give each its own table; the first is at {_where(first)}"
                yield Problem(where, message, fix)


def _one_place(drafts: list[Draft], environment: EnvironmentDraft) -> Iterator[Problem]:
    """Two steps in one folder hide each other's rows, for Spark keeps one list of its files, by batches' numbers."""
    folders = environment.environment.folders if environment.environment else {}
    seen: dict[tuple[str, str], Owner] = {}
    for draft in drafts:
        for step in draft.steps.values():
            for at, sink in enumerate(step.writes):
                for kind, name in (("folder", sink.folder), ("memory", sink.memory)):
                    if name is None:
                        continue
                    place = folders.get(name, name).rstrip("/") if kind == "folder" else name
                    first = seen.setdefault((kind, place), (draft, step.name, at))
                    if first[:2] != (draft, step.name):
                        where = draft.locations.where("steps", step.name, "writes", at, kind)
                        message = f"{kind} '{name}' is written by {_called(first, draft)} and by step '{step.name}'"
                        fix = f"give each its own; the first is at {_where(first, kind)}"
                        yield Problem(where, message, fix)


def _judged(drafts: list[Draft], environment: EnvironmentDraft) -> Iterator[tuple[str, Owner]]:
    if environment.environment is None:
        return
    for draft in drafts:
        for step in draft.steps.values():
            if has_quarantine(step, environment.environment):
                at = next((at for at, sink in enumerate(step.writes) if sink.table), None)
                if at is not None:  # beside the first of its tables
                    yield str(step.writes[at].table), (draft, step.name, at)


def _may_be_there(drafts: list[Draft], environment: EnvironmentDraft) -> Callable[[str], bool]:
    """Whether a table may be there, for all that can be said before the files are well formed."""
    anything = any(draft.is_incomplete for draft in drafts)
    judged_perhaps = {
        f"{table}{QUARANTINE_SUFFIX}"
        for draft in drafts
        for step, _, table in draft.tables
        if environment.environment is None or step not in draft.steps
    }
    return lambda table: anything or table in judged_perhaps


def _collisions(writers: dict[str, Owner], quarantines: dict[str, Owner]) -> Iterator[Problem]:
    for table, owner in writers.items():
        if table in quarantines:
            draft, step, at = owner
            judge = quarantines[table]
            message = f"step '{step}' writes '{table}', which holds the rows refused by {_called(judge, draft)}"
            where = draft.locations.where("steps", step, "writes", at, "table")
            yield Problem(where, message, "give the table another name")


def _reads(
    draft: Draft,
    step: Step,
    writers: dict[str, Owner],
    quarantines: dict[str, Owner],
    may_be_there: Callable[[str], bool],
) -> Iterator[Problem]:
    for name, read in step.reads.items():
        if read.table is None:
            continue
        where = draft.locations.where("steps", step.name, "reads", name, "table")
        if read.table not in writers:
            if read.table not in quarantines and not may_be_there(read.table):
                message = f"step '{step.name}' reads unknown table '{read.table}'"
                fix = closest_match(
                    read.table, [*writers, *quarantines], "write it in a step; outside data is a source"
                )
                yield Problem(where, message, fix)
            continue
        how = _rewritten(writers[read.table])
        if how and not read.static and not read.changes:
            message = f"step '{step.name}' reads '{read.table}' as a stream, but {how} changes its rows"
            yield Problem(where, message, "read it with static: true, or its changes with changes: true")
        elif read.changes and not how:
            message = f"step '{step.name}' reads the changes of '{read.table}', which only grows"
            where = draft.locations.where("steps", step.name, "reads", name, "changes")
            yield Problem(where, message, "take changes: true out: all that changes are new rows")


def _rewritten(owner: Owner) -> str:
    draft, name, at = owner
    step = draft.steps.get(name)
    if step is None:
        return ""
    sink = step.writes[at]
    if not step.rewrites(sink):
        return ""
    return f"mode {sink.mode}" if sink.mode != "append" else "output complete"


def _cycles(drafts: list[Draft], writers: dict[str, Owner]) -> Iterator[Problem]:
    before: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for draft in drafts:
        for step in draft.steps.values():
            node = before.setdefault((draft.name, step.name), {})
            for name, read in step.reads.items():
                if read.table in writers:
                    writer, other, _ = writers[str(read.table)]
                    node[(writer.name, other)] = name
    files = {draft.name: draft for draft in drafts}
    while circle := find_cycle(before):
        pipeline, reader = circle[0]
        reads = before[circle[0]].pop(circle[-1])
        where = files[pipeline].locations.where("steps", reader, "reads", reads)
        words = " → ".join(f"'{name}'" for _, name in [*circle, circle[0]])
        message = f"steps read each other's tables in a circle: {words}"
        if len(circle) == 1:
            message = f"step '{reader}' reads the table that it writes"
        yield Problem(where, message, "let one of them read something else")


def _called(owner: Owner, seen_from: Draft) -> str:
    draft, step, _ = owner
    return f"step '{step}'" + ("" if draft is seen_from else f" of pipeline '{draft.name}'")


def _where(owner: Owner, kind: str = "table") -> str:
    draft, step, at = owner
    return draft.locations.where("steps", step, "writes", at, kind)
