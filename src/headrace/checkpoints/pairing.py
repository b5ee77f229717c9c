"""Decide whether the tables of a step and its checkpoint belong together.

A pair belongs together if the table has a transaction of the query whose id is in the checkpoint. Everything here is a
pure function of what was read from both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.checkpoints.generations import Generation
from headrace.checkpoints.spark_checkpoint import SparkCheckpoint
from headrace.checkpoints.step_record import StepRecord
from headrace.errors import Problem


@dataclass(frozen=True)
class Writer:
    """A step that writes a table, as the table's properties name it."""

    bundle: str
    pipeline: str
    step: str
    generation: int
    table: str  # the id of the table, which a clone does not share

    @property
    def name(self) -> str:
        """The step and its pipeline, for messages."""
        return f"step {self.step!r} of pipeline {self.pipeline!r}"

    def is_step(self, other: Writer) -> bool:
        """Return whether both are the same step, in any generation."""
        return (self.bundle, self.pipeline, self.step) == (other.bundle, other.pipeline, other.step)


@dataclass(frozen=True)
class TableState:
    """What a start has to know of an existing table."""

    name: str
    location: str
    id: str
    version: int
    is_empty: bool  # it has no rows, and no query has written it
    writers: tuple[Writer, ...] = ()
    transactions: Mapping[str, int] | None = None  # the last batch of each query; None where this cannot be read
    restored: int | None = None  # the version of a RESTORE that removed the step's last batch


@dataclass(frozen=True)
class StepState:
    """A step with its checkpoint and its tables, as they are before a start."""

    writer: Writer  # the step itself; its `table` is empty
    where: str  # the location of the step in its YAML file
    checkpoint_directory: str
    generation: Generation
    checkpoint: SparkCheckpoint
    record: StepRecord | None
    tables: Mapping[str, TableState | None]  # by name; None: the table does not exist
    # All checkpoints of the environment: the steps that they belong to, by the id of the query.
    queries: Mapping[str, Writer] = field(default_factory=dict)
    steps: frozenset[tuple[str, str]] = frozenset()  # pipeline and name of all steps of the bundle

    @property
    def reset(self) -> str:
        """The command that starts the step over."""
        return f"headrace reset {self.writer.pipeline} --step {self.writer.step}"


def check_pair(step: StepState) -> list[Problem]:
    """Return why the step must not be started; an empty list if its checkpoint and its tables belong together."""
    if step.checkpoint.damaged:
        files = ", ".join(step.checkpoint.damaged)
        fix = f"restore the files from a copy, or start the step over: {step.reset}"
        message = f"the checkpoint of {step.writer.name} is damaged: {files}"
        return [Problem(step.checkpoint_directory, message, fix)]
    return [problem for name, table in step.tables.items() for problem in _check_table(step, name, table)]


def _check_table(step: StepState, name: str, table: TableState | None) -> Iterator[Problem]:
    checkpoint = step.checkpoint
    if table is None:
        if checkpoint.completed:
            yield _missing_table(step, name)
        return
    accepted = step.generation.tables.get(name)
    is_accepted = accepted is not None and accepted.id == table.id
    if any(writer.table != table.id for writer in table.writers) and not is_accepted:
        fix = f"write to the original, or let the step continue in the copy: {_adopt(step)}"
        yield Problem(table.location, f"table {name!r} is a copy of the table that {table.writers[0].name} writes", fix)
        return
    last_batch = (table.transactions or {}).get(checkpoint.query_id) if checkpoint.query_id else None
    if last_batch is None:
        if not (is_accepted or table.is_empty or _is_written_by(step, table)):
            yield _other_writer(step, name, table)
    elif last_batch > checkpoint.last_planned:
        yield _older_checkpoint(step, name, last_batch)
    elif table.restored is not None and table.restored != step.generation.restored.get(name):
        fix = f"restore the newest version of the table, or start the step over: {step.reset}"
        message = f"table {name!r} was restored to an older version (commit {table.restored}): rows are missing from it"
        yield Problem(table.location, f"{message} that {step.writer.name} will not write again", fix)


def _is_written_by(step: StepState, table: TableState) -> bool:
    """Return whether the table names this generation as its writer, and its checkpoint exists.

    A query whose batches had no rows may have left no transaction. Without access to the transactions, only the
    property is known.
    """
    is_named = any(
        writer.is_step(step.writer) and writer.generation == step.generation.number for writer in table.writers
    )
    exists = bool(step.checkpoint.query_id)
    return exists and (is_named or (table.transactions is None and not table.writers))


def _missing_table(step: StepState, name: str) -> Problem:
    batches = f"its checkpoint has completed batch {step.checkpoint.last_completed}"
    recorded = step.record.tables if step.record else {}
    if recorded and name not in recorded:
        old = ", ".join(map(repr, recorded))
        message = f"{step.writer.name} writes table {name!r} now, but {batches}, whose rows are in table {old}"
        fix = f"rename the table too, or read everything again into the new one: {step.reset}"
        return Problem(step.where, message, fix)
    message = f"table {name!r} is missing, but {batches}: rows of {step.writer.name} would be missing"
    return Problem(step.where, message, f"put the table back, or read everything again: {step.reset}")


def _older_checkpoint(step: StepState, name: str, last_batch: int) -> Problem:
    if step.checkpoint.is_new:
        message = f"the checkpoint of {step.writer.name} has lost its offsets and commits"
        reason = f"table {name!r} has batch {last_batch}, and Delta would skip every batch up to it"
    else:
        message = f"the checkpoint of {step.writer.name} is an older copy: it ends with batch"
        message += f" {step.checkpoint.last_planned}"
        reason = f"table {name!r} has batch {last_batch}"
    fix = f"put the newest checkpoint back, or start the step over: {step.reset}"
    return Problem(step.checkpoint_directory, f"{message}; {reason}", fix)


def _other_writer(step: StepState, name: str, table: TableState) -> Problem:
    """Return the problem of a table that has rows, but none of this step's checkpoint."""
    start_over = f"{step.reset} --table truncate"
    known = [step.queries[query] for query in table.transactions or {} if query in step.queries]
    old = next((writer for writer in known if not writer.is_step(step.writer)), None)
    if old is not None and (old.pipeline, old.step) not in step.steps:
        return _renamed(step, name, old)
    if old is not None:
        message = f"table {name!r} has rows that {old.name} wrote"
        return Problem(step.where, message, f"write to another table, or start over with it: {start_over}")
    if known or any(writer.is_step(step.writer) for writer in table.writers):
        message = f"the checkpoint of {step.writer.name} is missing, but table {name!r} has rows that it wrote"
        fix = f"restore {step.checkpoint_directory}, or read everything again: {step.reset}"
        return Problem(step.where, message, fix)
    if table.writers:
        other = table.writers[0]
        message = f"table {name!r} has rows that {other.name} of bundle {other.bundle!r} wrote"
    else:
        message = f"table {name!r} has rows that no known step wrote"
    fix = f"write to another table, add to this one: {_adopt(step)}, or replace its rows: {start_over}"
    return Problem(step.where, message, fix)


def _renamed(step: StepState, name: str, old: Writer) -> Problem:
    message = f"table {name!r} has rows that {old.name} wrote, which is no longer in the bundle"
    if old.pipeline != step.writer.pipeline and old.step == step.writer.step:
        paths = f"{old.pipeline} {step.writer.pipeline}"
    else:
        paths = f"{old.pipeline}/{old.step} {step.writer.pipeline}/{step.writer.step}"
    fix = f"if it was renamed, rename its checkpoint too: headrace checkpoint rename {paths}"
    return Problem(step.where, message, fix)


def _adopt(step: StepState) -> str:
    return f"headrace checkpoint adopt {step.writer.pipeline}/{step.writer.step}"
