"""The steps of one run at work: starts a step's query, watches over it, stops it at a batch's end."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.checkpoints.layout import spark_directory
from headrace.checkpoints.stop_request import Stop
from headrace.config.models import Environment, LocalEngine, Setting, Trigger, local_path, milliseconds
from headrace.errors import StepError, UnfinishedBatchError, one_line
from headrace.io.sinks import open_sink
from headrace.runtime import failures, prepare, session_settings
from headrace.runtime.recorder import Recorder
from headrace.runtime.task_progress import TaskProgress
from headrace.runtime.triggers import is_bounded, trigger_options
from headrace.spark.jvm import log_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

AUTO_COMPACT = "spark.databricks.delta.autoCompact.enabled"
POLL_INTERVAL_S = 0.2  # seconds between two looks at a query that runs
ABANDON_LIMIT_S = 5.0  # for queries to stop that did not finish their batch; then the JVM is killed


@dataclass
class QuerySupervisor:
    """What the steps of a run share, and what became of those that failed."""

    spark: SparkSession
    environment: Environment
    directory: Path
    pipeline: str
    recorder: Recorder
    stop: Stop
    failed: dict[str, StepError] = field(default_factory=dict)
    going: dict[str, tuple[prepare.PreparedStep, Trigger, StreamingQuery]] = field(default_factory=dict)
    completed: dict[str, prepare.PreparedStep] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)

    def go(self, ready: prepare.PreparedStep, trigger: Trigger) -> None:
        """Starts a step and lets it go; `look_after` notices its end."""
        if not self.stop.is_set():
            lesser = {} if is_bounded(trigger) else self.merging
            self.going[ready.step.name] = (ready, trigger, self._start(ready, trigger, lesser))

    def run_to_end(self, ready: prepare.PreparedStep, lesser: Mapping[str, Setting]) -> int:
        """Runs one step over what is there, and tells how many rows it had; its own settings go over the lesser."""
        if self.stop.is_set():
            return 0
        query = self._start(ready, "available_now", lesser)
        self.going[ready.step.name] = (ready, "available_now", query)
        while not _has_ended(query, within=POLL_INTERVAL_S):
            if self._is_over(ready, "available_now", query):
                self._stop_at_batch_end(ready, query)
        del self.going[ready.step.name]
        return self._judge(ready, query)

    def look_after(self, within: float = 0.0) -> None:
        """Notices queries that have ended; waits so many seconds for one of them."""
        for name, (ready, trigger, query) in list(self.going.items()):
            if self._is_over(ready, trigger, query):
                self._stop_at_batch_end(ready, query)
            if _has_ended(query, within=within) if within else not query.isActive:
                del self.going[name]
                self._judge(ready, query)

    def rest(self) -> None:
        """Stops all that still goes, each at its batch's end; what fails in that batch is left to `tell`."""
        for ready, _, query in self.going.values():
            self._stop_at_batch_end(ready, query)
            with suppress(StepError):
                self._judge(ready, query, stopped=True)
        self.going.clear()

    def abandon(self) -> str:
        """Stop waiting for the running queries. Return which batches are unfinished, those of earlier calls too."""
        active = {name: query for name, (_, _, query) in self.going.items() if _may_be_active(query)}
        self.going.clear()
        threads = [threading.Thread(target=_stop_quietly, args=(query,), daemon=True) for query in active.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(ABANDON_LIMIT_S / len(threads))
        self.unfinished += [f"step {name!r} was ended in {self._current_batch(name)}" for name in active]
        return "\n".join(f"{batch}; the next run repeats it" for batch in self.unfinished)

    def tell(self, order: Iterable[str]) -> None:
        """Raises the failures that nobody was told of yet, in the order of the steps."""
        if self.failed:
            failed = [self.failed[name] for name in order if name in self.failed]
            raise StepError.of([problem for error in failed for problem in error.problems])

    @cached_property
    def merging(self) -> Mapping[str, Setting]:
        """Lets a step that goes on for long merge its tables' small files, unless the environment has a word on it."""
        is_open = self.spark.conf.get(AUTO_COMPACT, None) is None
        return {AUTO_COMPACT: True} if isinstance(self.environment.engine, LocalEngine) and is_open else {}

    def _start(self, ready: prepare.PreparedStep, trigger: Trigger, lesser: Mapping[str, Setting]) -> StreamingQuery:
        """Starts the step's query under its own settings, in its own scheduler pool."""
        ready = self._completed(ready)
        step = ready.step
        name = step.writes[0].memory or f"{self.pipeline}.{step.name}"
        checkpoint = spark_directory(self.environment, self.pipeline, step.name)
        self.recorder.expect(name, step.name, checkpoint)
        writer = (
            ready.writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger_options(trigger))
        )
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", step.name)
        with session_settings.session_settings(self.spark, {**lesser, **step.settings}):
            try:
                return open_sink.start(writer, step, self.environment, native=ready.native)
            except Exception as error:
                raise StepError(
                    f"step {step.name!r} cannot start: {one_line(error)}",
                    where=f"step {step.name!r}",
                    fix="mend its sink, its options or its settings",
                ) from error

    def _completed(self, ready: prepare.PreparedStep) -> prepare.PreparedStep:
        """Prepares a step once more that was prepared over tables still to be made: now they are there."""
        if not ready.awaits:
            return ready
        name = ready.step.name
        if name not in self.completed:
            note = self.recorder.note(name)
            step = prepare.read_from_first_version(ready.step, ready.awaits)
            with session_settings.session_settings(self.spark, step.settings):
                self.completed[name] = prepare.prepare(self.spark, step, self.environment, note=note, to_come={})
        return self.completed[name]

    def _stop_at_batch_end(self, ready: prepare.PreparedStep, query: StreamingQuery) -> None:
        """Stop the query between two batches. Raise UnfinishedBatchError if its tasks make no progress."""
        batch, tasks = _last_batch(query), TaskProgress(self.spark, str(query.runId))
        while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
            _has_ended(query, within=0.05)
            if tasks.seconds_without() > milliseconds(self.environment.stop_grace) / 1000:
                raise UnfinishedBatchError(
                    f"step {ready.step.name!r} was ended in {self._current_batch(ready.step.name)}: "
                    f"none of its Spark tasks finished within {self.environment.stop_grace} (stop_grace)",
                    where=str(log_file(self.directory) or "the log of Spark"),
                    fix="start the run again: it repeats the batch; if it hangs again, look for a function that waits",
                )
        query.stop()

    def _current_batch(self, step: str) -> str:
        """Return the batch that a step is working on, as far as its checkpoint can be read here."""
        checkpoint = Path(local_path(spark_directory(self.environment, self.pipeline, step)))
        numbers = [int(file.name) for file in checkpoint.glob("offsets/[0-9]*") if file.name.isdigit()]
        return f"batch {max(numbers)}" if numbers else "its batch"

    def _is_over(self, ready: prepare.PreparedStep, trigger: Trigger, query: StreamingQuery) -> bool:
        """Whether the query is to end: the run is, or it has read all that there was and would only wait for timers."""
        waits = ready.has_timers and is_bounded(trigger) and self.recorder.is_idle(str(query.runId))
        return self.stop.is_set() or waits

    def _judge(self, ready: prepare.PreparedStep, query: StreamingQuery, *, stopped: bool = False) -> int:
        """How many rows an ended query has read; if it has failed, its step's on_failure says what of the others."""
        rows = self.recorder.wait(str(query.runId))
        error = query.exception()
        stopped = stopped or self.stop.is_set() or ready.has_timers
        if error is None or (stopped and failures.is_interrupt(error)):
            return rows
        failed = failures.step_error(ready.step, error, log_file(self.directory))
        self.recorder.say("step failed", ready.step.name, failed.problems[0].message)
        self.failed[ready.step.name] = failed
        if ready.step.on_failure == "stop":
            raise failed
        return rows


def _has_ended(query: StreamingQuery, *, within: float) -> bool:
    """Whether the query ends within so many seconds, well or not."""
    from pyspark.errors import StreamingQueryException

    with suppress(StreamingQueryException):
        return bool(query.awaitTermination(within))  # type: ignore[arg-type]
    return True


def _may_be_active(query: StreamingQuery) -> bool:
    with suppress(Exception):  # a signal may have cut off a call, and with it the connection to the JVM
        return bool(query.isActive)
    return True


def _stop_quietly(query: StreamingQuery) -> None:
    with suppress(Exception):  # the process is about to end
        query.stop()


def _last_batch(query: StreamingQuery) -> Any:
    progress = query.lastProgress
    return progress["batchId"] if progress else None
