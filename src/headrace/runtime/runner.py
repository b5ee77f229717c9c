"""Runs a pipeline: guards before start, then its steps in order, until their triggers say that they are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace import interrupts
from headrace.checkpoints import stop_request
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.config.locations import closest_match
from headrace.config.models import Bundle, Environment, LocalEngine, Step, Trigger
from headrace.errors import ConfigurationError, HeadraceError, UnfinishedBatchError, one_line
from headrace.graph import order
from headrace.io.sinks import open_sink, quarantine
from headrace.runtime import backlog, follow_loop, prepare
from headrace.runtime.events import Event, events_file
from headrace.runtime.recorder import Recorder
from headrace.runtime.supervisor import POLL_INTERVAL_S, QuerySupervisor
from headrace.runtime.triggers import is_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PARALLEL_STEPS = 8  # steps that end, side by side on a cluster


@dataclass(frozen=True)
class AnnouncedRun:
    """A run that has been announced: where its events go, and whether it should stop."""

    recorder: Recorder
    stop: stop_request.Stop


@contextmanager
def announce_run(
    bundle: Bundle, pipeline: str, *, watch: Callable[[Event], None] = lambda event: None
) -> Iterator[AnnouncedRun]:
    """Record that a run starts and how it ends, and honour requests to stop it: also while Spark starts."""
    start = AnnouncedRun(Recorder(events_file(bundle.directory, pipeline), pipeline, watch), stop_request.Stop())
    with stop_request.watch_requests(bundle.environment, pipeline, start.stop):
        start.recorder.say("run started")
        try:
            yield start
        except KeyboardInterrupt as interrupt:
            start.recorder.say("run failed", message=str(interrupt) or "interrupted")
            raise
        except Exception as error:
            message = error.problems[0].message if isinstance(error, HeadraceError) else one_line(error)
            start.recorder.say("run failed", message=message)
            raise
        start.recorder.say("run stopped" if start.stop.is_set() else "run ended")


def run(
    spark: SparkSession,
    bundle: Bundle,
    pipeline: str,
    *,
    start: AnnouncedRun | None = None,
    only: Sequence[str] = (),
    follow: bool = False,
    once: bool = False,
    watch: Callable[[Event], None] = lambda event: None,
) -> None:
    """Run the pipeline's steps, or those named, until their triggers say that they are done.

    A run that has not been announced before the session was opened is announced here.
    """
    chosen = select_steps(bundle, pipeline, only)
    with ExitStack() as stack:
        start = start or stack.enter_context(announce_run(bundle, pipeline, watch=watch))
        environment, recorder, stop = bundle.environment, start.recorder, start.stop
        stack.callback(_quietly, recorder.listen(spark))
        stack.enter_context(_stop_on_signals(stop))
        for step in chosen:
            lock = Lock(spark, step_directory(environment, pipeline, step.name), step.name)
            stack.callback(_quietly, lock.release)
        if stop.is_set():
            return
        located = ((bundle.locations_of(pipeline), step) for step in chosen)
        prepared = prepare.prepare_all(spark, located, environment, note=recorder.note)
        for ready in prepared:
            for warning in ready.warnings:
                recorder.say("warning", ready.step.name, warning)
        crew = QuerySupervisor(spark, environment, bundle.directory, pipeline, recorder, stop)
        _run_steps(crew, prepared, order.tables_read(bundle), follow=follow, once=once)


def check_pipelines(spark: SparkSession, bundle: Bundle) -> list[str]:
    """Check everything that a run of each pipeline would check, writing nothing. Return the warnings."""
    prepared = prepare.prepare_all(spark, order.all_steps(bundle), bundle.environment)
    return [f"step {ready.step.name!r}: {warning}" for ready in prepared for warning in ready.warnings]


def select_steps(bundle: Bundle, pipeline: str, only: Sequence[str]) -> list[Step]:
    """The steps that were asked for, in their order."""
    in_order = order.pipeline_steps(bundle, pipeline)
    known = [step.name for step in in_order]
    for name in only:
        if name not in known:
            raise ConfigurationError(f"pipeline {pipeline!r} has no step {name!r}", fix=closest_match(name, known))
    return [step for step in in_order if not only or step.name in only]


def is_unbounded(bundle: Bundle, pipeline: str, only: Sequence[str] = (), *, follow: bool, once: bool) -> bool:
    """Whether a run would go on until it is told to stop."""
    triggers = [bundle.environment.trigger_of(step.name) for step in select_steps(bundle, pipeline, only)]
    return not once and (follow or not all(is_bounded(trigger) for trigger in triggers))


def is_short(bundle: Bundle, pipeline: str, only: Sequence[str] = (), *, follow: bool, once: bool) -> bool:
    """Return whether a run would end by itself, and have little to read."""
    if is_unbounded(bundle, pipeline, only, follow=follow, once=once):
        return False
    local = isinstance(bundle.environment.engine, LocalEngine)
    return not (local and backlog.is_large(bundle, pipeline, select_steps(bundle, pipeline, only)))


def _run_steps(
    crew: QuerySupervisor, prepared: Sequence[prepare.PreparedStep], read: set[str], *, follow: bool, once: bool
) -> None:
    """All steps once, in their order; then those that go on, go on. `read` are the tables that some step reads."""
    triggers = {ready.step.name: crew.environment.trigger_of(ready.step.name) for ready in prepared}
    if once:
        triggers = {name: trigger if is_bounded(trigger) else "available_now" for name, trigger in triggers.items()}
    ending = [ready for ready in prepared if is_bounded(triggers[ready.step.name])]
    try:
        try:
            _start_in_order(crew, prepared, read, triggers)
            if follow and ending:
                follow_loop.follow(crew, ending)
            while crew.going and not crew.stop.is_set():
                crew.look_after(POLL_INTERVAL_S)
        except (KeyboardInterrupt, UnfinishedBatchError):
            crew.abandon()
            raise
        finally:
            crew.rest()
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(crew.abandon()) from None
    except UnfinishedBatchError as error:
        crew.abandon()
        if crew.stop.signal is not None:
            interrupts.interrupt(crew.stop.signal, str(error))
        raise
    crew.tell(ready.step.name for ready in prepared)


def _start_in_order(
    crew: QuerySupervisor, prepared: Sequence[prepare.PreparedStep], read: set[str], triggers: Mapping[str, Trigger]
) -> None:
    """Starts each step when those whose tables it reads have ended, or have begun to go on, and waits for the last.

    Steps that do not read each other run side by side: a cold run of orders takes a tenth less time.
    """
    waiting = list(prepared)
    after = {
        ready.step.name: set(order.upstream_steps(ready.step, [one.step for one in prepared])) for ready in prepared
    }
    running: dict[str, prepare.PreparedStep] = {}

    def make(ready: prepare.PreparedStep, *, only_needed: bool = False) -> None:
        quarantine_table = quarantine.quarantine_table(ready.step, crew.environment)
        judged = ready.judged and quarantine_table is not None and quarantine_table.name in read and not only_needed
        open_sink.create_tables(
            crew.spark, ready.step, crew.environment, ready.schema, judged=judged, only_needed=only_needed
        )

    while (waiting or running) and not crew.stop.is_set():
        busy = {ready.step.name for ready in waiting} | running.keys()
        for ready in [one for one in waiting if not busy & after[one.step.name]]:
            is_ending = is_bounded(triggers[ready.step.name])
            if is_ending and len(running) >= _at_once(crew.environment):
                break
            waiting.remove(ready)
            make(ready, only_needed=is_ending)
            crew.go(ready, triggers[ready.step.name])
            if is_ending:
                running[ready.step.name] = ready
        crew.look_after(POLL_INTERVAL_S / len(running) if running else 0)
        for name in running.keys() - crew.going.keys():
            make(running.pop(name))  # those who read the tables find them, also when no row came


def _at_once(environment: Environment) -> int:
    return environment.engine.cores if isinstance(environment.engine, LocalEngine) else MAX_PARALLEL_STEPS


def _quietly(clean_up: Callable[[], None]) -> None:
    """Clean up after a run without hiding how it ended: the JVM may be gone, or the connection cut off by a signal."""
    with suppress(Exception):
        clean_up()


@contextmanager
def _stop_on_signals(stop: stop_request.Stop) -> Iterator[None]:
    """Let the first signal stop the run between two batches; a second one does not wait for the batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: Any) -> None:
        if stop.signal is not None:
            interrupts.interrupt(number)
        stop.signal = number
        stop.set()

    handlers = interrupts.handle(on_signal)
    try:
        yield
    finally:
        interrupts.restore(handlers)
