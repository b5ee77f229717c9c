"""Check a reset before it is made or undone: find sinks and readers that would lose or repeat rows, or fail."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

from headrace.checkpoints.generations import Generation
from headrace.config.models import Bundle, KafkaSource, Step, local_path
from headrace.errors import Problem
from headrace.io.sinks.quarantine import tables_with_quarantine
from headrace.io.start_position import InputStart

TableChoice = Literal["keep", "truncate"]


def check_sinks(
    bundle: Bundle, pipeline: str, step: Step, starts: Collection[InputStart], choice: TableChoice | None
) -> Iterator[Problem]:
    """Yield a problem for each sink that prevents the reset.

    This is a table that would lose or repeat rows, or a folder that Spark has already written to. `starts` says where
    the step's streaming inputs start to read. `choice` is the value of `--table`; None if it was not given.
    """
    repeats = any(start.repeats for start in starts)
    starts_later = any(start.options and not start.is_beginning for start in starts)
    for number, sink in enumerate(step.writes):
        where = bundle.where(pipeline, "steps", step.name, "writes", number)
        if choice is None and sink.table and sink.mode != "upsert" and starts_later:
            message = f"table {sink.table!r} of step {step.name!r} would lose its rows: the step would not read those"
            message += " from before this position again"
            fix = "pass --table keep, or --table truncate if only the rows from this position on shall be in the table"
            yield Problem(where, message, fix)
        if choice == "keep" and sink.table and sink.mode == "append" and repeats:
            message = f"step {step.name!r} would append rows to table {sink.table!r} a second time"
            fix = "pass --table truncate; only a sink with mode: upsert can keep its rows and get them again"
            if _can_continue(bundle, step):
                fix += "; to read only what the previous checkpoint has not read: --from checkpoint"
            yield Problem(where, message, fix)
        if sink.folder and _has_list_of_batches(bundle.environment.folders[sink.folder]):
            path = bundle.environment.folders[sink.folder]
            message = f"Spark would skip the batches of a new checkpoint in folder {sink.folder!r}, which has a list of"
            message += f" those of the old one ({path}/_spark_metadata)"
            fix = f"set another path under folders in conf/{bundle.environment.name}.yml, then reset the step"
            yield Problem(where, message, fix)


def check_readers(
    bundle: Bundle, pipeline: str, reset_steps: Collection[tuple[str, Step]], truncated: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each step that streams from a truncated or missing table and is not reset: it would fail.

    `reset_steps` are the steps of the reset, each with its pipeline, and `truncated` the tables that are not kept.
    """
    names = " ".join(f"--step {step.name}" for each, step in reset_steps if each == pipeline)
    for _, writer in reset_steps:
        tables = tables_with_quarantine(writer, bundle.environment) & set(truncated)
        for reader_pipeline, reader in stream_readers(bundle, tables):
            if (reader_pipeline, reader) not in reset_steps:
                message = f"step {reader.name!r} streams from a table of step {writer.name!r}, and would fail"
                message += " when that table is written from the beginning"
                fix = f"reset it too: headrace reset {pipeline} {names} --downstream{bundle.environment.option}"
                yield Problem(bundle.where(reader_pipeline, "steps", reader.name), message, fix)


def check_undo(
    bundle: Bundle, pipeline: str, step: Step, generation: Generation, *, has_written: bool
) -> Iterator[Problem]:
    """Yield the reasons why the reset of a step cannot be undone.

    `has_written` says whether the new generation may have written rows that the undo would not remove.
    """
    where = bundle.where(pipeline, "steps", step.name)
    if not generation.previous:
        yield Problem(where, f"step {step.name!r} has no reset that could be undone", "name the step that was reset")
        return
    if has_written:
        message = f"step {step.name!r} has written rows since its reset, so the reset cannot be undone"
        yield Problem(where, message, "to start it over again, use headrace reset without --undo")
    truncated = [
        name for name, table in generation.tables.items() if table.origin == "truncated" and not table.is_pending
    ]
    for reader_pipeline, reader in stream_readers(bundle, set(truncated)):
        message = f"step {reader.name!r} streams from a table that the reset truncated, and would read its rows twice"
        command = f"headrace run {pipeline} --step {step.name}{bundle.environment.option}"
        fix = f"run the step, so that it reads everything again: {command}"
        yield Problem(bundle.where(reader_pipeline, "steps", reader.name), message, fix)


def stream_readers(bundle: Bundle, tables: Collection[str]) -> Iterator[tuple[str, Step]]:
    """Yield the steps, with their pipelines, that read one of the tables as a stream."""
    for pipeline in bundle.pipelines.values():
        for step in pipeline.steps.values():
            if any(read.table in tables and not read.static for read in step.reads.values()):
                yield pipeline.name, step


def _has_list_of_batches(folder: str) -> bool:
    """Return whether Spark has written a folder before. A folder that is not on a local disk counts as written."""
    path = local_path(folder)
    return not path or Path(path, "_spark_metadata").exists()


def _can_continue(bundle: Bundle, step: Step) -> bool:
    """Return whether a new checkpoint can start where the previous one stopped: if it reads one table, or one source.

    The source must be topics: a checkpoint has no position in files.
    """
    streams = [read for read in step.reads.values() if not read.static]
    sources = bundle.environment.sources
    return len(streams) == 1 and all(
        read.table or isinstance(sources[str(read.source)], KafkaSource) for read in streams
    )
