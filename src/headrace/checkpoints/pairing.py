"""Decide whether the tables of a step and its checkpoint belong together.

The checkpoint contains the id of the step's query. A table belongs to the checkpoint if the last batch of this query in
the table was planned in the checkpoint. A table without a batch of this query must be empty, accepted by a reset or an
adoption, or name the current generation as its writer. The functions are pure: all that they need was read before.
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
    table: str  # the id of the table. A clone copies the properties, but has another id

    @property
    def name(self) -> str:
        """The step and its pipeline, for messages."""
        return f"step {self.step!r} of pipeline {self.pipeline!r}"

    def is_step(self, other: Writer) -> bool:
        """Return whether both are the same step, in any generation."""
        return (self.bundle, self.pipeline, self.step) == (other.bundle, other.pipeline, other.step)


@dataclass(frozen=True)
class TableState:
    """What must be known of an existing table before a step that writes it may start."""

    name: str
    location: str
    id: str
    version: int
    is_empty: bool  # it has no rows, and no query has written it
    writers: tuple[Writer, ...] = ()
    transactions: Mapping[str, int] | None = None  # by query id, the last batch of each query; None if unreadable
    # The version that a RESTORE created and that lacks the query's last batch; None if there is no such RESTORE.
    restore_commit_version: int | None = None


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
    # By query id, the step of each checkpoint in the environment.
    queries: Mapping[str, Writer] = field(default_factory=dict)
    steps: frozenset[tuple[str, str]] = frozenset()  # pipeline and name of all steps of the bundle
    environment_option: str = ""  # the option that selects the environment in commands: see `Environment.option`

    @property
    def reset_command(self) -> str:
        """The command that starts the step over."""
        return f"headrace reset {self.writer.pipeline} --step {self.writer.step}{self.environment_option}"


def check_pair(step: StepState) -> list[Problem]:
    """Return the problems for which the step must not be started.

    The list is empty if the checkpoint is not damaged and belongs to each of the step's tables.
    """
    if step.checkpoint.damage:
        files = ", ".join(step.checkpoint.damage)
        fix = f"restore the files from a copy, or start the step over: {step.reset_command}"
        message = f"the checkpoint of {step.writer.name} is damaged: {files}"
        return [Problem(step.checkpoint_directory, message, fix)]
    return [problem for name, table in step.tables.items() for problem in _check_table(step, name, table)]


def _check_table(step: StepState, name: str, table: TableState | None) -> Iterator[Problem]:
    """Yield the problem of a table that does not belong to the step's checkpoint."""
    checkpoint = step.checkpoint
    if table is None:
        if checkpoint.completed and not _is_added(step, name):
            yield _missing_table(step, name)
        return
    is_accepted = _is_accepted(step, name, table)
    is_clone = any(writer.table != table.id for writer in table.writers)
    if is_clone and not is_accepted:
        fix = f"write to the original, or let the step continue in the copy: {_adopt_command(step)}"
        yield Problem(table.location, f"table {name!r} is a copy of the table that {table.writers[0].name} writes", fix)
        return
    last_batch = (table.transactions or {}).get(checkpoint.query_id) if checkpoint.query_id else None
    if last_batch is None:
        if not (is_accepted or table.is_empty or _is_written_by(step, table)):
            yield _other_writer(step, name, table)
    elif last_batch > checkpoint.last_planned:
        yield _older_checkpoint(step, name, last_batch)
    elif table.restore_commit_version not in (None, step.generation.restored.get(name)):
        fix = f"restore the newest version of the table, or start the step over: {step.reset_command}"
        message = f"table {name!r} was restored to an older version (commit {table.restore_commit_version}): rows are"
        message += f" missing from it that {step.writer.name} will not write again"
        yield Problem(table.location, message, fix)


def _is_accepted(step: StepState, name: str, table: TableState) -> bool:
    """Return whether a reset or an adoption has accepted the table, and no other query has written it since."""
    accepted = step.generation.tables.get(name)
    if accepted is None or accepted.id != table.id:
        return False
    return table.transactions is None or table.transactions.keys() <= {*accepted.queries, step.checkpoint.query_id}


def _is_written_by(step: StepState, table: TableState) -> bool:
    """Return whether the step's current generation writes the table, which has no transaction of the step's query.

    This is true if the generation has a checkpoint and the table names it as its writer: a query whose batches had no
    rows may have left no transaction. If the table's transactions cannot be read and the table names no writer, this is
    true for every generation that has a checkpoint.
    """
    is_named = any(
        writer.is_step(step.writer) and writer.generation == step.generation.number for writer in table.writers
    )
    has_checkpoint = bool(step.checkpoint.query_id)
    return has_checkpoint and (is_named or (table.transactions is None and not table.writers))


def _is_added(step: StepState, name: str) -> bool:
    """Return whether the table is an additional one: the step still writes all tables that it wrote before."""
    recorded = step.record.tables if step.record else {}
    return bool(recorded) and name not in recorded and recorded.keys() <= step.tables.keys()


def _missing_table(step: StepState, name: str) -> Problem:
    """Return the problem of a table that does not exist, although the checkpoint has completed a batch.

    If the last start did not record the table, the step's YAML now names another table than before.
    """
    batches = f"its checkpoint has completed batch {step.checkpoint.last_completed}"
    recorded = step.record.tables if step.record else {}
    if recorded and name not in recorded:
        old = ", ".join(map(repr, recorded))
        message = f"{step.writer.name} writes table {name!r} now, but {batches}, whose rows are in table {old}"
        fix = f"rename the table too, or read everything again into the new one: {step.reset_command}"
        return Problem(step.where, message, fix)
    message = f"table {name!r} is missing, but {batches}: rows of {step.writer.name} would be missing"
    return Problem(step.where, message, f"put the table back, or read everything again: {step.reset_command}")


def _older_checkpoint(step: StepState, name: str, last_batch: int) -> Problem:
    """Return the problem of a checkpoint that ends before the table's last batch, or has no batches at all."""
    if step.checkpoint.is_new:
        message = f"the checkpoint of {step.writer.name} has lost its offsets and commits"
        reason = f"table {name!r} has batch {last_batch}, and Delta would skip every batch up to it"
    else:
        message = f"the checkpoint of {step.writer.name} is an older copy: it ends with batch"
        message += f" {step.checkpoint.last_planned}"
        reason = f"table {name!r} has batch {last_batch}"
    fix = f"put the newest checkpoint back, or start the step over: {step.reset_command}"
    return Problem(step.checkpoint_directory, f"{message}; {reason}", fix)


def _other_writer(step: StepState, name: str, table: TableState) -> Problem:
    """Return the problem of a table that has rows, but none that a query of the step's checkpoint wrote."""
    start_over = f"{step.reset_command} --table truncate"
    known = [step.queries[query] for query in table.transactions or {} if query in step.queries]
    known_other = next((writer for writer in known if not writer.is_step(step.writer)), None)
    if known_other is not None and (known_other.pipeline, known_other.step) not in step.steps:
        return _renamed_step(step, name, known_other)
    if known_other is not None:
        message = f"table {name!r} has rows that {known_other.name} wrote"
        return Problem(step.where, message, f"write to another table, or replace the rows of this one: {start_over}")
    if known or any(writer.is_step(step.writer) for writer in table.writers):
        message = f"the checkpoint of {step.writer.name} is missing, but table {name!r} has rows that the step wrote"
        fix = f"restore {step.checkpoint_directory}, or read everything again: {step.reset_command}"
        return Problem(step.where, message, fix)
    if table.writers:
        writer = table.writers[0]
        message = f"table {name!r} has rows that {writer.name} of bundle {writer.bundle!r} wrote"
    else:
        message = f"table {name!r} has rows that no known step wrote"
    fix = f"write to another table, add to this one: {_adopt_command(step)}, or replace its rows: {start_over}"
    return Problem(step.where, message, fix)


def _renamed_step(step: StepState, name: str, old: Writer) -> Problem:
    """Return the problem of a table that `old` wrote. `old` is not in the bundle; it may be the step's former name."""
    message = f"table {name!r} has rows that {old.name} wrote, which is no longer in the bundle"
    if old.pipeline != step.writer.pipeline and old.step == step.writer.step:
        paths = f"{old.pipeline} {step.writer.pipeline}"
    else:
        paths = f"{old.pipeline}/{old.step} {step.writer.pipeline}/{step.writer.step}"
    fix = f"if it was renamed, rename its checkpoint too: headrace checkpoint rename {paths}{step.environment_option}"
    return Problem(step.where, message, fix)


def _adopt_command(step: StepState) -> str:
    """Return the command with which the step adopts its tables."""
    return f"headrace checkpoint adopt {step.writer.pipeline}/{step.writer.step}{step.environment_option}"
