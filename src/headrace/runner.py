"""Runs a pipeline: starts its steps in order, watches over them, stops them at a batch's end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace import failures, graph, rounds, sinks, steps
from headrace.checkpoints.layout import spark_directory, step_directory
from headrace.checkpoints.lock import Lock
from headrace.config.locate import nearest
from headrace.config.models import Bundle, Environment, Every, Step, Trigger
from headrace.errors import ConfigurationError, HeadraceError, StepError
from headrace.progress import Event, Recorder, events_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGERS: dict[str, Mapping[str, Any]] = {
    "available_now": {"availableNow": True},
    "once": {"once": True},
    "default": {"processingTime": "0 seconds"},
}
LOOK = 0.2  # seconds between two looks at a query that runs


def run(
    spark: SparkSession,
    bundle: Bundle,
    pipeline: str,
    *,
    only: Sequence[str] = (),
    follow: bool = False,
    once: bool = False,
    watch: Callable[[Event], None] = lambda event: None,
) -> None:
    """Runs the pipeline's steps, or those named, until their triggers say that they are done."""
    environment = bundle.environment
    chosen = chosen_steps(bundle, pipeline, only)
    recorder = Recorder(events_file(bundle.directory, pipeline), pipeline, watch)
    with ExitStack() as stack:
        stack.callback(recorder.listen(spark))
        stop = stack.enter_context(_stop_on_signals())
        for step in chosen:
            lock = Lock(spark, step_directory(environment, pipeline, step.name), step.name)
            stack.callback(lock.release)
        prepared = steps.rehearse(spark, chosen, environment, note=recorder.note)
        for ready in prepared:
            sinks.make_tables(spark, ready.step, environment, ready.schema, judged=ready.judged)
        crew = Crew(spark, environment, pipeline, recorder, stop)
        recorder.say("run started")
        try:
            crew.work(prepared, follow=follow, once=once)
        except HeadraceError as error:
            recorder.say("run failed", message=error.problems[0].message)
            raise
        recorder.say("run stopped" if stop.is_set() else "run ended")


def chosen_steps(bundle: Bundle, pipeline: str, only: Sequence[str]) -> list[Step]:
    """The steps that were asked for, in their order."""
    steps_of_all = graph.order(bundle, pipeline)
    known = [step.name for step in steps_of_all]
    for name in only:
        if name not in known:
            raise ConfigurationError(f"pipeline {pipeline!r} has no step {name!r}", fix=nearest(name, known))
    return [step for step in steps_of_all if not only or step.name in only]


def goes_on(bundle: Bundle, pipeline: str, only: Sequence[str] = (), *, follow: bool, once: bool) -> bool:
    """Whether a run would go on until it is told to stop."""
    triggers = [bundle.environment.trigger_of(step.name) for step in chosen_steps(bundle, pipeline, only)]
    return not once and (follow or not all(ends(trigger) for trigger in triggers))


@dataclass
class Crew:
    """The steps of one run, at work."""

    spark: SparkSession
    environment: Environment
    pipeline: str
    recorder: Recorder
    stop: threading.Event
    failed: list[StepError] = field(default_factory=list)

    def work(self, prepared: Sequence[steps.Prepared], *, follow: bool, once: bool) -> None:
        """Steps that end run one after the other, each over all that its inputs wrote; the others run together."""
        going: dict[str, tuple[steps.Prepared, StreamingQuery]] = {}
        ending: list[steps.Prepared] = []
        try:
            for ready in prepared:
                trigger = self.environment.trigger_of(ready.step.name)
                if once or ends(trigger):
                    ending.append(ready)
                    self.run_to_end(ready, "available_now" if once and not ends(trigger) else trigger)
                elif not self.stop.is_set():
                    going[ready.step.name] = (ready, self.start(ready, trigger))
            if follow and ending:
                rounds.follow(self, ending, self.environment, watch_over=lambda: self.look_after(going))
            while going and not self.stop.wait(LOOK):
                self.look_after(going)
        finally:
            for _, query in going.values():
                stop_at_batch_end(query)
                self.recorder.wait(str(query.runId))
        if self.failed:
            raise StepError.of([problem for error in self.failed for problem in error.problems])

    def run_to_end(self, ready: steps.Prepared, trigger: Trigger = "available_now") -> bool:
        """Runs one step over what is there; True when it had rows."""
        if self.stop.is_set():
            return False
        query = self.start(ready, trigger)
        while not has_ended(query, within=LOOK):
            if self.stop.is_set():
                stop_at_batch_end(query)
        self.recorder.wait(str(query.runId))
        self.judge(ready, query)
        return bool(query.lastProgress and any(report["numInputRows"] for report in query.recentProgress))

    def start(self, ready: steps.Prepared, trigger: Trigger) -> StreamingQuery:
        """Starts the step's query under its own settings, in its own scheduler pool."""
        step = ready.step
        if not ready.complete:
            ready = steps.prepare(self.spark, step, self.environment, note=self.recorder.note(step.name), to_come={})
        name = step.writes[0].memory or f"{self.pipeline}.{step.name}"
        self.recorder.expect(name, step.name)
        checkpoint = spark_directory(self.environment, self.pipeline, step.name)
        writer = ready.writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**_trigger(trigger))
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", step.name)
        with steps.settings(self.spark, step.settings):
            return sinks.start(writer, step, self.environment, native=sinks.is_native(step, judged=ready.judged))

    def look_after(self, going: dict[str, tuple[steps.Prepared, StreamingQuery]]) -> None:
        """Notices queries that have ended by themselves."""
        for name, (ready, query) in list(going.items()):
            if not query.isActive:
                del going[name]
                self.judge(ready, query)

    def judge(self, ready: steps.Prepared, query: StreamingQuery) -> None:
        """What a failed query means for the others: its step says so in on_failure."""
        error = query.exception()
        if error is None or (self.stop.is_set() and failures.is_interrupt(error)):
            return
        failed = failures.step_error(ready.step, error)
        self.recorder.say("step failed", ready.step.name, failed.problems[0].message)
        if ready.step.on_failure == "stop":
            raise failed
        self.failed.append(failed)


def ends(trigger: Trigger) -> bool:
    """Whether a run with this trigger ends by itself."""
    return trigger in ("available_now", "once")


def has_ended(query: StreamingQuery, *, within: float) -> bool:
    """Whether the query ends within so many seconds, well or not."""
    from pyspark.errors import StreamingQueryException

    with suppress(StreamingQueryException):
        return bool(query.awaitTermination(within))  # type: ignore[arg-type]
    return True


def stop_at_batch_end(query: StreamingQuery) -> None:
    """Stops the query between two batches; what a batch had not committed is done anew at the next start."""
    batch = _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
        has_ended(query, within=0.05)
    query.stop()


def _last_batch(query: StreamingQuery) -> Any:
    progress = query.lastProgress
    return progress["batchId"] if progress else None


def _trigger(trigger: Trigger) -> Mapping[str, Any]:
    if isinstance(trigger, Every):
        return {"processingTime": trigger.every}
    return TRIGGERS[trigger]


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets; a second Ctrl-C does not wait for the batch."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_signal(number: int, frame: Any) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
