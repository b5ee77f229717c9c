"""Supervise the streaming queries of one run: start them, poll them, stop them between batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headrace.checkpoints.stop_request import Stop
from headrace.config.models import Environment, LocalEngine, Setting, Step, Trigger, local_path, milliseconds
from headrace.errors import HeadraceError, StepError, UnfinishedBatchError, one_line
from headrace.interrupts import unmasked
from headrace.io.sinks.open_sink import start
from headrace.runtime import failures
from headrace.runtime.batch_report import RecordedStep
from headrace.runtime.prepare import PreparedStep
from headrace.runtime.recorder import Recorder
from headrace.runtime.session_settings import session_settings
from headrace.runtime.step_query import open_query, with_first_version
from headrace.runtime.step_restarts import StepRestarts
from headrace.runtime.streaming_query import has_ended, last_batch, may_be_active, stop_quietly
from headrace.runtime.table_changes import is_schema_change
from headrace.runtime.task_progress import TaskProgress
from headrace.runtime.triggers import is_bounded, trigger_options
from headrace.spark.jvm import log_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

AUTO_COMPACT = "spark.databricks.delta.autoCompact.enabled"
POLL_INTERVAL_S = 0.2
ABANDON_LIMIT_S = 5.0  # how long `abandon` waits for queries in the middle of a batch before the JVM is killed


class RunningStep(NamedTuple):
    """A step whose query has been started."""

    step: PreparedStep
    trigger: Trigger
    query: StreamingQuery
    defaults: Mapping[str, Setting]  # Spark settings, over which the step's own settings take precedence


@dataclass
class QuerySupervisor:
    """Runs the queries of a pipeline, and records which steps failed."""

    spark: SparkSession
    environment: Environment
    directory: Path  # for the events and logs of runs
    pipeline: str
    checkpoints: Mapping[str, str]  # Spark's checkpoint directory of each step
    restored_settings: Mapping[str, Mapping[str, str]]  # what Spark restores from each step's checkpoint
    recorder: Recorder
    stop: Stop
    restarts: StepRestarts
    failed: dict[str, StepError] = field(default_factory=dict)  # by step name, as are the other dictionaries
    running: dict[str, RunningStep] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)  # for each abandoned batch, the step and the batch
    _writers: dict[str, DataStreamWriter] = field(default_factory=dict)  # of steps that were prepared without one

    @unmasked()
    def start(self, step: PreparedStep, trigger: Trigger) -> None:
        """Start a step's query, unless the run is stopping. `poll` detects when the query ends."""
        if not self.stop.is_set():
            defaults = {} if is_bounded(trigger) else self.compaction
            self._start(step, trigger, defaults)

    @unmasked()
    def run_once(self, step: PreparedStep, defaults: Mapping[str, Setting]) -> int:
        """Run a step over all available data, and return how many rows it read; 0 if the run is stopping.

        `defaults` are Spark settings; the step's own settings take precedence.
        """
        if self.stop.is_set():
            return 0
        try:
            self.restarts.guard.require_unchanged(step.step.name)
            step = self.restarts.with_current_schemas(step)
        except HeadraceError as error:
            self._fail(step.step, error)
            return 0
        self._start(step, "available_now", defaults)
        rows = 0
        while running := self.running.get(step.step.name):
            while not has_ended(running.query, timeout=POLL_INTERVAL_S):
                if self._should_stop(running):
                    self._stop_between_batches(running)
            del self.running[step.step.name]
            rows += self._finish(running)  # may start the step again
        if not rows:
            self.recorder.record_idle(step.step.name)
        return rows

    @unmasked()
    def poll(self, timeout: float = 0.0) -> None:
        """Handle queries that have ended, waiting up to `timeout` seconds for each."""
        for name, running in list(self.running.items()):
            if self._should_stop(running):
                self._stop_between_batches(running)
            if has_ended(running.query, timeout=timeout) if timeout else not running.query.isActive:
                del self.running[name]
                self._finish(running)

    @unmasked()
    def stop_all(self) -> None:
        """Stop all running queries between batches. Failures in their last batch are kept for `raise_failures`."""
        for running in self.running.values():
            self._stop_between_batches(running)
            with suppress(StepError):
                self._finish(running, stopped=True)
        self.running.clear()

    def abandon(self) -> str:
        """Stop the running queries in the middle of their batches, waiting only briefly.

        Return a line for each unfinished batch, including those of earlier calls.
        """
        active = {name: running.query for name, running in self.running.items() if may_be_active(running.query)}
        self.running.clear()
        threads = [threading.Thread(target=stop_quietly, args=(query,), daemon=True) for query in active.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(ABANDON_LIMIT_S / len(threads))
        self.unfinished += [f"step {name!r} was ended in {self._current_batch(name)}" for name in active]
        return "\n".join(f"{batch}; the next run repeats it" for batch in self.unfinished)

    def raise_failures(self, order: Iterable[str]) -> None:
        """Raise the recorded failures as one StepError, in step order."""
        if self.failed:
            errors = [self.failed[name] for name in order if name in self.failed]
            raise StepError.of(problem for error in errors for problem in error.problems)

    @cached_property
    def compaction(self) -> Mapping[str, Setting]:
        """The settings with which Delta merges small files, for queries that run for days.

        They are empty if the session has a value for the setting already, or if the engine is not local.
        """
        is_unset = self.spark.conf.get(AUTO_COMPACT, None) is None
        return {AUTO_COMPACT: True} if isinstance(self.environment.engine, LocalEngine) and is_unset else {}

    def _start(self, prepared: PreparedStep, trigger: Trigger, defaults: Mapping[str, Setting]) -> RunningStep:
        """Start the step's query with its own settings, in its own scheduler pool. Raise StepError if that fails."""
        step = prepared.step
        name = step.writes[0].memory or f"{self.pipeline}.{step.name}"
        checkpoint = self.checkpoints[step.name]
        self.recorder.add_query(name, RecordedStep.of(step, self.environment, checkpoint))
        writer = self._writer(prepared).queryName(name)
        writer = writer.option("checkpointLocation", checkpoint).trigger(**trigger_options(trigger))
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", step.name)
        with session_settings(self.spark, {**defaults, **step.settings}):
            try:
                query = start(writer, step, self.environment, spark_sink=prepared.uses_spark_sink)
            except Exception as error:
                raise StepError(
                    f"step {step.name!r} cannot start: {one_line(error)}",
                    where=f"step {step.name!r}",
                    fix="correct its sink, its options or its settings",
                ) from error
        if not is_bounded(trigger):
            self.recorder.add_unbounded_query(str(query.runId), step.name)
        self.running[step.name] = RunningStep(prepared, trigger, query, defaults)
        return self.running[step.name]

    def _writer(self, prepared: PreparedStep) -> DataStreamWriter:
        """Return the step's writer. If it was prepared without one, open its query: its tables are ready now."""
        if prepared.writer is not None:
            return prepared.writer
        name = prepared.step.name
        if name not in self._writers:
            step = with_first_version(prepared.step, prepared.created_tables)
            with session_settings(self.spark, step.settings):
                query = open_query(self.spark, step, self.environment, on_counts=self.recorder.on_counts(name))
            self._writers[name] = query.writer
        return self._writers[name]

    def _stop_between_batches(self, running: RunningStep) -> None:
        """Stop the query between two batches. Raise UnfinishedBatchError if no task finishes within `stop_grace`."""
        name, query = running.step.step.name, running.query
        batch, tasks = last_batch(query), TaskProgress(self.spark, str(query.runId))
        while query.isActive and query.status["isTriggerActive"] and last_batch(query) == batch:
            has_ended(query, timeout=0.05)
            if tasks.seconds_without() > milliseconds(self.environment.stop_grace) / 1000:
                raise UnfinishedBatchError(
                    f"step {name!r} was ended in {self._current_batch(name)}: "
                    f"none of its Spark tasks finished within {self.environment.stop_grace} (stop_grace)",
                    where=str(log_file(self.directory) or "the log of Spark"),
                    fix="start the run again: it repeats the batch; if it hangs again, look for a function that waits",
                )
        query.stop()

    def _current_batch(self, step: str) -> str:
        """Return the batch that a step is processing, like "batch 7".

        Return "its batch" if the step's checkpoint is not on this machine's disk.
        """
        checkpoint = Path(local_path(self.checkpoints[step]))
        numbers = [int(file.name) for file in checkpoint.glob("offsets/[0-9]*") if file.name.isdigit()]
        return f"batch {max(numbers)}" if numbers else "its batch"

    def _should_stop(self, running: RunningStep) -> bool:
        """Return whether the run is stopping, or a bounded query has read everything and only waits for timers."""
        only_waits = (
            running.step.has_timers and is_bounded(running.trigger) and self.recorder.is_idle(str(running.query.runId))
        )
        return self.stop.is_set() or only_waits

    def _finish(self, running: RunningStep, *, stopped: bool = False) -> int:
        """Return the number of rows that an ended query read.

        If the query failed because a table that it streams has new columns, start the step again. If it failed for
        another reason, record the failure, and raise it as StepError if the step's `on_failure` is "stop". An
        interruption is no failure if the query was stopped.
        """
        prepared, query = running.step, running.query
        rows = self.recorder.wait_for_end(str(query.runId))
        error = query.exception()
        stopped = stopped or self.stop.is_set()
        if error is None or ((stopped or prepared.has_timers) and failures.is_interrupt(error)):
            return rows
        again: PreparedStep | None = None
        failure: HeadraceError = failures.step_error(prepared.step, error, log_file(self.directory))
        if is_schema_change(error) and not stopped:
            try:
                again = self.restarts.after_schema_change(prepared)
            except HeadraceError as refused:
                failure = refused
        if again is None:
            self._fail(prepared.step, failure)
        else:
            self._start(again, running.trigger, running.defaults)
        return rows

    def _fail(self, step: Step, failure: HeadraceError) -> None:
        """Record the failure of a step, and raise it as StepError if the step's `on_failure` is "stop"."""
        self.failed[step.name] = StepError.of(failure.problems)
        self.recorder.record("step failed", step.name, failure.problems[0].message)
        if step.on_failure == "stop":
            raise self.failed[step.name]
