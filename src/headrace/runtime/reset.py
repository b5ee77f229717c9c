"""Start steps over: plan what a reset changes, start new checkpoint generations, and return to the previous ones.

A reset deletes nothing in a checkpoint. It makes the next generation current. The tables are truncated when the step
starts the next time, so that a reset that is undone before leaves the tables unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.checkpoints.generations import AcceptedTable, write_generation
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.checkpoints.spark_checkpoint import read_checkpoint, read_offsets
from headrace.checkpoints.step_record import read_record
from headrace.config.models import Bundle, Step
from headrace.errors import GuardError, HeadraceError, Problem
from headrace.graph import order
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import restore_version, table_state
from headrace.io.sinks.quarantine import quarantine_table
from headrace.io.start_position import InputStart, Position, ReachedOffset
from headrace.runtime.input_starts import find_starts
from headrace.runtime.reset_checks import check_readers, check_sinks, check_undo, stream_readers, tables_of
from headrace.runtime.step_checkpoint import StepCheckpoint, open_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TableChoice = Literal["keep", "truncate"]


@dataclass(frozen=True)
class TableReset:
    """What a reset does to one table."""

    name: str
    truncated: bool  # by the next start of the step; otherwise the rows are kept
    accepted: AcceptedTable  # the table's entry in the new generation


@dataclass(frozen=True)
class StepReset:
    """What a reset changes for one step."""

    pipeline: str
    step: Step
    checkpoint: StepCheckpoint
    tables: tuple[TableReset, ...] = ()  # those that exist, the quarantine table included
    starts: Mapping[str, InputStart] = field(default_factory=dict)  # where its streaming inputs start to read
    warnings: tuple[str, ...] = ()

    @property
    def new_generation(self) -> int:
        """The number of the generation that the reset starts."""
        return self.checkpoint.generation.highest + 1


def plan_reset(
    spark: SparkSession,
    bundle: Bundle,
    pipeline: str,
    names: Collection[str],
    *,
    downstream: bool = False,
    table: TableChoice | None = None,
    position: Position | None = None,
) -> tuple[StepReset, ...]:
    """Return what a reset of the steps would change, each step after those whose tables it reads.

    `table` is the choice for the tables of sinks. Without it, those of upserts are kept and all others are truncated.
    Quarantine tables are always truncated. With `downstream`, also reset the steps that stream from these tables. The
    steps start to read at `position`, or by default where new checkpoints start. Tables that are truncated are read
    from the beginning. Raise GuardError with all reasons why the reset would lose or repeat rows, or make another step
    fail.
    """
    steps = _selected(bundle, pipeline, names, downstream=downstream)
    resets: list[StepReset] = []
    problems: list[Problem] = []
    rewritten: set[str] = set()  # the tables that are truncated or do not exist
    for name, step in steps:
        tables = tuple(_plan_tables(spark, bundle, step, table))
        checkpoint = open_checkpoint(bundle, name, step.name, spark)
        reached = _reached_offset(step, checkpoint)
        starts: dict[str, InputStart] = {}
        try:
            starts = find_starts(spark, step, bundle.environment, position, truncated=rewritten, reached=reached)
        except HeadraceError as error:
            problems += error.problems
        problems += check_sinks(bundle, name, step, starts.values(), keep_tables=table == "keep")
        resets.append(StepReset(name, step, checkpoint, tables, starts, tuple(_warnings(step, checkpoint, starts))))
        rewritten |= tables_of(bundle, step) - {each.name for each in tables if not each.truncated}
    problems += check_readers(bundle, pipeline, steps, rewritten)
    if problems:
        raise GuardError.of(problems)
    return tuple(resets)


def apply_reset(spark: SparkSession, bundle: Bundle, resets: Sequence[StepReset]) -> None:
    """Make the new generations current. Raise GuardError if one of the steps is running.

    Reset readers before the steps whose tables they read: if this is interrupted, a reader that was reset alone is
    still correct.
    """
    with _locked(spark, bundle, resets):
        for reset in reversed(resets):
            tables = {table.name: table.accepted for table in reset.tables}
            starts = {name: start.options for name, start in reset.starts.items() if start.options}
            write_generation(reset.checkpoint.files, reset.checkpoint.generation.next(tables, starts))


def undo_reset(spark: SparkSession, bundle: Bundle, pipeline: str, names: Collection[str]) -> tuple[StepReset, ...]:
    """Return to the previous generations of the steps, and restore the tables that were truncated.

    Raise GuardError if a step was not reset, if its new generation has completed a batch, if another step streams from
    a table that has been truncated, or if a step is running.
    """
    resets: list[StepReset] = []
    problems: list[Problem] = []
    for step in order.select_steps(bundle, pipeline, names):
        checkpoint = open_checkpoint(bundle, pipeline, step.name, spark)
        resets.append(StepReset(pipeline, step, checkpoint))
        generation = checkpoint.generation
        has_completed = bool(read_checkpoint(checkpoint.files, f"{generation.number}/spark").completed)
        problems += check_undo(bundle, pipeline, step, generation, has_completed=has_completed)
    if problems:
        raise GuardError.of(problems)
    with _locked(spark, bundle, resets):
        for reset in resets:
            _undo_step(spark, bundle, reset)
    return tuple(resets)


def _undo_step(spark: SparkSession, bundle: Bundle, reset: StepReset) -> None:
    generation, files = reset.checkpoint.generation, reset.checkpoint.files
    truncated = {name: table for name, table in generation.tables.items() if table.origin == "truncated"}
    restored = {}
    for name, table in truncated.items():
        if not table.is_pending:  # if this is interrupted, the next start truncates the table again
            generation = generation.with_table(name, table.pending())
            write_generation(files, generation)
            restored[name] = restore_version(spark, table_of(bundle.environment, name), table.version)
    write_generation(files, generation.undone(restored))


def _plan_tables(spark: SparkSession, bundle: Bundle, step: Step, choice: TableChoice | None) -> Iterator[TableReset]:
    for sink in step.writes:
        if sink.table:
            is_truncated = choice == "truncate" or (choice is None and sink.mode != "upsert")
            yield from _plan_table(spark, bundle, sink.table, truncated=is_truncated)
    quarantine = quarantine_table(step, bundle.environment)
    if quarantine is not None:
        yield from _plan_table(spark, bundle, quarantine.name, truncated=True)


def _plan_table(spark: SparkSession, bundle: Bundle, name: str, *, truncated: bool) -> Iterator[TableReset]:
    state = table_state(spark, table_of(bundle.environment, name))
    if state is not None:
        origin: Literal["truncated", "kept"] = "truncated" if truncated else "kept"
        queries = sorted(state.transactions or ())
        yield TableReset(name, truncated, AcceptedTable(state.id, origin, state.version, queries, is_pending=truncated))


def _reached_offset(step: Step, checkpoint: StepCheckpoint) -> ReachedOffset | None:
    """Return the offset at which the step's checkpoint has stopped; None if it is unknown, as for `find_starts`."""
    path = f"{checkpoint.generation.number}/spark"
    content = read_checkpoint(checkpoint.files, path)
    if not content.completed or content.last_planned != content.last_completed or content.damage:
        return None
    offsets = read_offsets(checkpoint.files, path, content.last_completed)
    has_one_stream = sum(not read.static for read in step.reads.values()) == 1
    return offsets[0] if has_one_stream and len(offsets) == 1 and isinstance(offsets[0], dict) else None


def _warnings(step: Step, checkpoint: StepCheckpoint, starts: Mapping[str, InputStart]) -> Iterator[str]:
    for sink in step.writes:
        if not sink.table:
            yield f"{sink.kind} {getattr(sink, sink.kind)!r} gets all of these rows again"
    record = read_record(checkpoint.files, checkpoint.generation.number)
    if any(start.options for start in starts.values()) and record and record.signature.get("stateful"):
        yield "its state starts empty: windows, joins and duplicates that began before this position are incomplete"


def _selected(bundle: Bundle, pipeline: str, names: Collection[str], *, downstream: bool) -> list[tuple[str, Step]]:
    """Return the steps to reset with their pipelines, each after those whose tables it reads.

    With `downstream`, these include all steps that stream from tables of the others.
    """
    selected = {(pipeline, step.name) for step in order.select_steps(bundle, pipeline, names)}
    ordered = [(Path(locations.file).stem, step) for locations, step in order.all_steps(bundle)]
    for name, step in ordered if downstream else ():
        if (name, step.name) in selected:
            readers = stream_readers(bundle, tables_of(bundle, step))
            selected |= {(other, reader.name) for other, reader in readers}
    return [(name, step) for name, step in ordered if (name, step.name) in selected]


def _locked(spark: SparkSession, bundle: Bundle, resets: Sequence[StepReset]) -> ExitStack:
    """Lock the steps until the returned context ends. Raise GuardError if one of them is running."""
    with ExitStack() as stack:
        for reset in resets:
            directory = step_directory(bundle.environment, reset.pipeline, reset.step.name)
            stack.callback(Lock(spark, directory, reset.step.name).release)
        return stack.pop_all()
