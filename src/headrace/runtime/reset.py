"""Start steps over: plan what a reset changes, start new checkpoint generations, and return to the previous ones.

A reset deletes nothing in a checkpoint. It makes the next generation current. The tables are truncated when the step
starts the next time, so that a reset that is undone before leaves the tables unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.checkpoints.generations import AcceptedTable, write_generation
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.checkpoints.spark_checkpoint import read_checkpoint
from headrace.config.models import Bundle, Step, local_path
from headrace.errors import GuardError, Problem
from headrace.graph import order
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import restore_version, table_state
from headrace.io.sinks.quarantine import quarantine_table
from headrace.runtime.start_guard import StepCheckpoint, open_checkpoint

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
    tables: tuple[TableReset, ...]  # those that exist, the quarantine table included
    warnings: tuple[str, ...]

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
    downstream: bool,
    table: TableChoice | None,
) -> tuple[StepReset, ...]:
    """Return what a reset of the steps would change, each step after those whose tables it reads.

    `table` is the choice for the tables of sinks. Without it, those of upserts are kept and all others are truncated.
    Quarantine tables are always truncated. With `downstream`, also reset the steps that stream from these tables. Raise
    GuardError with all reasons why the reset would lose or repeat rows, or make another step fail.
    """
    steps = _selected(bundle, pipeline, names, downstream=downstream)
    resets: list[StepReset] = []
    problems: list[Problem] = []
    for name, step in steps:
        problems += _check_choice(bundle, name, step, table)
        resets.append(_plan_step(spark, bundle, name, step, table))
    problems += _check_readers(bundle, pipeline, resets)
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
            write_generation(reset.checkpoint.files, reset.checkpoint.generation.next(tables))


def undo_reset(spark: SparkSession, bundle: Bundle, pipeline: str, names: Collection[str]) -> tuple[StepReset, ...]:
    """Return to the previous generations of the steps, and restore the tables that were truncated.

    Raise GuardError if a step was not reset, if its new generation has completed a batch, if another step streams from
    a table that has been truncated, or if a step is running.
    """
    resets: list[StepReset] = []
    problems: list[Problem] = []
    for step in order.select_steps(bundle, pipeline, names):
        checkpoint = open_checkpoint(bundle, pipeline, step.name, spark)
        resets.append(StepReset(pipeline, step, checkpoint, (), ()))
        problems += _check_undo(bundle, pipeline, step, checkpoint)
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


def _plan_step(spark: SparkSession, bundle: Bundle, pipeline: str, step: Step, choice: TableChoice | None) -> StepReset:
    tables: list[TableReset] = []
    warnings: list[str] = []
    for sink in step.writes:
        if sink.table:
            is_truncated = choice == "truncate" or (choice is None and sink.mode != "upsert")
            tables += _plan_table(spark, bundle, sink.table, truncated=is_truncated)
        else:
            warnings.append(f"{sink.kind} {getattr(sink, sink.kind)!r} gets all rows again")
    quarantine = quarantine_table(step, bundle.environment)
    if quarantine is not None:
        tables += _plan_table(spark, bundle, quarantine.name, truncated=True)
    return StepReset(
        pipeline, step, open_checkpoint(bundle, pipeline, step.name, spark), tuple(tables), tuple(warnings)
    )


def _plan_table(spark: SparkSession, bundle: Bundle, name: str, *, truncated: bool) -> Iterator[TableReset]:
    state = table_state(spark, table_of(bundle.environment, name))
    if state is not None:
        origin: Literal["truncated", "kept"] = "truncated" if truncated else "kept"
        queries = sorted(state.transactions or ())
        yield TableReset(name, truncated, AcceptedTable(state.id, origin, state.version, queries, is_pending=truncated))


def _check_choice(bundle: Bundle, pipeline: str, step: Step, choice: TableChoice | None) -> Iterator[Problem]:
    """Yield the sinks of a step with which it cannot be reset, or not with this choice."""
    for number, sink in enumerate(step.writes):
        where = bundle.where(pipeline, "steps", step.name, "writes", number)
        if choice == "keep" and sink.table and sink.mode == "append":
            message = f"step {step.name!r} would append all rows to table {sink.table!r} a second time"
            yield Problem(where, message, "pass --table truncate; only a sink with mode: upsert can keep its rows")
        if sink.folder:
            path = local_path(bundle.environment.folders[sink.folder])
            message = f"Spark would skip the batches of a new checkpoint in folder {sink.folder!r}, which has a list of"
            message += f" those of the old one ({path}/_spark_metadata)"
            fix = "let the sink write to another folder, then run it: a new folder needs no reset"
            yield Problem(where, message, fix)


def _check_readers(bundle: Bundle, pipeline: str, resets: Sequence[StepReset]) -> Iterator[Problem]:
    """Yield the steps that stream from a truncated or missing table and are not reset: they would fail."""
    selected = {(reset.pipeline, reset.step.name) for reset in resets}
    for reset in resets:
        kept = {table.name for table in reset.tables if not table.truncated}
        for reader_pipeline, reader in _stream_readers(bundle, _tables(bundle, reset.step) - kept):
            if (reader_pipeline, reader.name) not in selected:
                names = " ".join(f"--step {each.step.name}" for each in resets if each.pipeline == pipeline)
                message = f"step {reader.name!r} streams from a table of step {reset.step.name!r}, and would fail"
                message += " when that table is written from the beginning"
                fix = f"reset it too: headrace reset {pipeline} {names} --downstream"
                yield Problem(bundle.where(reader_pipeline, "steps", reader.name), message, fix)


def _check_undo(bundle: Bundle, pipeline: str, step: Step, checkpoint: StepCheckpoint) -> Iterator[Problem]:
    where, generation = bundle.where(pipeline, "steps", step.name), checkpoint.generation
    if not generation.previous:
        yield Problem(where, f"step {step.name!r} has no reset that could be undone", "name the step that was reset")
        return
    if read_checkpoint(checkpoint.files, f"{generation.number}/spark").completed:
        message = f"step {step.name!r} has completed a batch since its reset, so the reset cannot be undone"
        yield Problem(where, message, "to start it over again, use headrace reset without --undo")
    truncated = [
        name for name, table in generation.tables.items() if table.origin == "truncated" and not table.is_pending
    ]
    for reader_pipeline, reader in _stream_readers(bundle, set(truncated)):
        message = f"step {reader.name!r} streams from a table that the reset truncated, and would read its rows twice"
        fix = f"run the step, so that it reads everything again: headrace run {pipeline} --step {step.name}"
        yield Problem(bundle.where(reader_pipeline, "steps", reader.name), message, fix)


def _tables(bundle: Bundle, step: Step) -> set[str]:
    """Return the names of the tables that a step writes, its quarantine table included."""
    quarantine = quarantine_table(step, bundle.environment)
    return {*step.tables_written, *([quarantine.name] if quarantine else [])}


def _stream_readers(bundle: Bundle, tables: Collection[str]) -> Iterator[tuple[str, Step]]:
    """Yield the steps, with their pipelines, that read one of the tables as a stream."""
    for pipeline in bundle.pipelines.values():
        for step in pipeline.steps.values():
            if any(read.table in tables and not read.static for read in step.reads.values()):
                yield pipeline.name, step


def _selected(bundle: Bundle, pipeline: str, names: Collection[str], *, downstream: bool) -> list[tuple[str, Step]]:
    """Return the steps to reset with their pipelines, each after those whose tables it reads.

    With `downstream`, these include all steps that stream from tables of the others.
    """
    selected = {(pipeline, step.name) for step in order.select_steps(bundle, pipeline, names)}
    ordered = [(Path(locations.file).stem, step) for locations, step in order.all_steps(bundle)]
    for name, step in ordered if downstream else ():
        if (name, step.name) in selected:
            readers = _stream_readers(bundle, _tables(bundle, step))
            selected |= {(other, reader.name) for other, reader in readers}
    return [(name, step) for name, step in ordered if (name, step.name) in selected]


def _locked(spark: SparkSession, bundle: Bundle, resets: Sequence[StepReset]) -> ExitStack:
    """Lock the steps until the returned context ends. Raise GuardError if one of them is running."""
    with ExitStack() as stack:
        for reset in resets:
            directory = step_directory(bundle.environment, reset.pipeline, reset.step.name)
            stack.callback(Lock(spark, directory, reset.step.name).release)
        return stack.pop_all()
