"""Start steps over: plan what a reset changes, start new checkpoint generations, and return to the previous ones.

A reset deletes nothing in a checkpoint: it makes the next generation current. Tables are truncated at the next start of
the step, so a reset that is undone before that start has not changed them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.checkpoints.generations import AcceptedTable, write_generation
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.checkpoints.spark_checkpoint import SparkCheckpoint, read_offsets
from headrace.config.models import Bundle, Step
from headrace.errors import GuardError, HeadraceError, Problem
from headrace.graph import order
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import restore_version, table_state
from headrace.io.sinks.quarantine import quarantine_table, tables_with_quarantine
from headrace.io.start_position import InputStart, Position, ReachedOffset
from headrace.runtime.input_starts import find_starts
from headrace.runtime.reset_checks import TableChoice, check_readers, check_sinks, check_undo, stream_readers
from headrace.runtime.step_checkpoint import StepCheckpoint, open_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    planned_batches: tuple[int, ...] = ()  # of the checkpoint, when the reset was planned

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
    Quarantine tables are always truncated. Without `table`, tables are not truncated if the step would not read all of
    their rows again: this is an error. With `downstream`, also reset the steps that stream from these tables. The
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
        content = checkpoint.read()
        reached = _reached_offset(step, checkpoint, content)
        starts: dict[str, InputStart] = {}
        try:
            starts = find_starts(spark, step, bundle.environment, position, truncated=rewritten, reached=reached)
        except HeadraceError as error:
            problems += error.problems
        problems += check_sinks(bundle, name, step, starts.values(), table)
        warnings = tuple(_warnings(step, checkpoint, starts))
        resets.append(StepReset(name, step, checkpoint, tables, starts, warnings, content.planned))
        kept = {each.name for each in tables if not each.truncated}
        rewritten |= tables_with_quarantine(step, bundle.environment) - kept
    problems += check_readers(bundle, pipeline, steps, rewritten)
    if problems:
        raise GuardError.of(problems)
    return tuple(resets)


def apply_reset(spark: SparkSession, bundle: Bundle, resets: Sequence[StepReset]) -> None:
    """Make the new generations current.

    Raise GuardError if one of the steps is running, or has been run or reset after the reset was planned.

    Reset readers before the steps whose tables they read: if this is interrupted, a reader that was reset alone is
    still correct.
    """
    with _locked(spark, bundle, [(reset.pipeline, reset.step) for reset in resets]):
        for reset in resets:
            _require_current(spark, bundle, reset)
        for reset in reversed(resets):
            tables = {table.name: table.accepted for table in reset.tables}
            starts = {name: start.options for name, start in reset.starts.items() if start.options}
            has_batches = bool(reset.planned_batches)
            generation = reset.checkpoint.generation.next(tables, starts, has_batches=has_batches)
            write_generation(reset.checkpoint.files, generation)


def undo_reset(spark: SparkSession, bundle: Bundle, pipeline: str, names: Collection[str]) -> tuple[StepReset, ...]:
    """Return to the previous generations of the steps, and restore the tables that were truncated.

    Raise GuardError if a step was not reset, if its new generation has written rows, if another step streams from a
    table that has been truncated, or if a step is running.
    """
    steps = order.select_steps(bundle, pipeline, names)
    with _locked(spark, bundle, [(pipeline, step) for step in steps]):
        resets = [StepReset(pipeline, step, open_checkpoint(bundle, pipeline, step.name, spark)) for step in steps]
        problems: list[Problem] = []
        for reset in resets:
            generation = reset.checkpoint.generation
            content = reset.checkpoint.read()
            # Rows of an incomplete batch would stay in a table that was kept; RESTORE removes them from others.
            keeps_tables = any(table.origin == "kept" for table in generation.tables.values())
            has_written = bool(content.planned if keeps_tables else content.completed)
            problems += check_undo(bundle, pipeline, reset.step, generation, has_written=has_written)
        if problems:
            raise GuardError.of(problems)
        for reset in resets:
            _undo_step(spark, bundle, reset)
    return tuple(resets)


def _require_current(spark: SparkSession, bundle: Bundle, reset: StepReset) -> None:
    """Raise GuardError if the step has been run or reset after the reset was planned."""
    now = open_checkpoint(bundle, reset.pipeline, reset.step.name, spark)
    if now.generation != reset.checkpoint.generation or now.read().planned != reset.planned_batches:
        raise GuardError(
            f"step {reset.step.name!r} has been run or reset after this reset was planned",
            where=bundle.where(reset.pipeline, "steps", reset.step.name),
            fix="run the same command again",
        )


def _undo_step(spark: SparkSession, bundle: Bundle, reset: StepReset) -> None:
    generation, files = reset.checkpoint.generation, reset.checkpoint.files
    truncated = {name: accepted for name, accepted in generation.tables.items() if accepted.origin == "truncated"}
    restored = {}
    for name, accepted in truncated.items():
        table = table_of(bundle.environment, name)
        state = table_state(spark, table)
        if state is None or (accepted.is_pending and state.version == accepted.version):
            continue  # no start has truncated it
        # If this is interrupted, the table is pending in a newer version: the next undo restores it, or the next start
        # truncates it again.
        generation = generation.with_table(name, accepted.pending())
        write_generation(files, generation)
        restored[name] = restore_version(spark, table, accepted.version)
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


def _reached_offset(step: Step, checkpoint: StepCheckpoint, content: SparkCheckpoint) -> ReachedOffset | None:
    """Return the offset at which the step's checkpoint has stopped; None if it is unknown, as for `find_starts`."""
    if not content.completed or content.last_planned != content.last_completed or content.damage:
        return None
    offsets = read_offsets(checkpoint.files, f"{checkpoint.generation.number}/spark", content.last_completed)
    has_one_stream = sum(not read.static for read in step.reads.values()) == 1
    return offsets[0] if has_one_stream and len(offsets) == 1 and isinstance(offsets[0], dict) else None


def _warnings(step: Step, checkpoint: StepCheckpoint, starts: Mapping[str, InputStart]) -> Iterator[str]:
    for sink in step.writes if any(start.repeats for start in starts.values()) else ():
        if not sink.table:
            label = "the console" if sink.console else f"{sink.kind} {getattr(sink, sink.kind)!r}"
            yield f"{label} gets rows a second time"
    record = checkpoint.read_record()
    starts_later = any(start.options and not start.is_beginning for start in starts.values())
    if starts_later and record and record.signature.get("stateful"):
        yield "the state starts empty: windows, joins and deduplication do not include rows from before this position"


def _selected(bundle: Bundle, pipeline: str, names: Collection[str], *, downstream: bool) -> list[tuple[str, Step]]:
    """Return the steps to reset with their pipelines, each after those whose tables it reads.

    With `downstream`, these include all steps that stream from tables of the others.
    """
    selected = {(pipeline, step.name) for step in order.select_steps(bundle, pipeline, names)}
    ordered = [(Path(locations.file).stem, step) for locations, step in order.all_steps(bundle)]
    for name, step in ordered if downstream else ():
        if (name, step.name) in selected:
            readers = stream_readers(bundle, tables_with_quarantine(step, bundle.environment))
            selected |= {(other, reader.name) for other, reader in readers}
    return [(name, step) for name, step in ordered if (name, step.name) in selected]


def _locked(spark: SparkSession, bundle: Bundle, steps: Iterable[tuple[str, Step]]) -> ExitStack:
    """Lock the steps until the returned context ends. Raise GuardError if one of them is running."""
    with ExitStack() as stack:
        for pipeline, step in steps:
            directory = step_directory(bundle.environment, pipeline, step.name)
            stack.callback(Lock(spark, directory, step.name).release)
        return stack.pop_all()
