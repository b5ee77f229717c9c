"""Run a pipeline: lock and prepare its steps, start them in order, and supervise them until they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from headrace import interrupts
from headrace.checkpoints.layout import step_directory
from headrace.checkpoints.lock import Lock
from headrace.config.locations import KeyLocations
from headrace.config.models import Bundle, Environment, LocalEngine, Step, Trigger
from headrace.errors import ConfigurationError, GuardError, UnfinishedBatchError
from headrace.graph import order
from headrace.io.sinks.quarantine import quarantine_table
from headrace.io.sinks.table_sink import add_columns, create_tables
from headrace.runtime import follow_loop
from headrace.runtime.announced_run import AnnouncedRun, announce_run, stop_on_signals
from headrace.runtime.backlog import is_large
from headrace.runtime.change_guard import StepChanges
from headrace.runtime.events import Event
from headrace.runtime.heartbeats import write_heartbeats
from headrace.runtime.input_starts import start_settings
from headrace.runtime.prepare import PreparedStep, prepare_all
from headrace.runtime.session_settings import session_settings
from headrace.runtime.start_guard import StartGuard
from headrace.runtime.step_query import OnCounts, ignore_counts
from headrace.runtime.step_restarts import StepRestarts
from headrace.runtime.supervisor import POLL_INTERVAL_S, QuerySupervisor
from headrace.runtime.triggers import is_bounded
from headrace.spark.known_settings import misspelt_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PARALLEL_STEPS = 8  # bounded steps that run at the same time on a cluster


def run(
    spark: SparkSession,
    bundle: Bundle,
    pipeline: str,
    *,
    announced: AnnouncedRun | None = None,
    only: Sequence[str] = (),
    follow: bool = False,
    once: bool = False,
    watch: Callable[[Event], None] = lambda event: None,
) -> None:
    """Run the pipeline's steps, or those named by `only`, until all have ended or the run is stopped.

    With `follow`, bounded steps run again when they have new input. With `once`, unbounded steps process the available
    data and end. If `announced` is not given, the run is announced here, and `watch` is called with each event.
    """
    steps = order.select_steps(bundle, pipeline, only)
    with ExitStack() as stack:
        announced = announced or stack.enter_context(announce_run(bundle, pipeline, watch=watch))
        environment, recorder, stop = bundle.environment, announced.recorder, announced.stop
        stack.callback(_without_errors, recorder.listen(spark))
        stack.enter_context(stop_on_signals(stop))
        locks = {}
        for step in steps:
            locks[step.name] = Lock(spark, step_directory(environment, pipeline, step.name), step.name)
            stack.callback(_without_errors, locks[step.name].release)
        if stop.is_set():
            return
        names = [step.name for step in steps]
        stack.enter_context(write_heartbeats(environment, pipeline, names, recorder))
        guard = StartGuard(spark, bundle, pipeline, steps, locks, release=recorder.release)
        steps = guard.use_starts()
        generations = [checkpoint.generation for checkpoint in guard.checkpoints.values()]
        stack.enter_context(session_settings(spark, start_settings(generations)))
        located = [(bundle.locations_of(pipeline), step) for step in steps]
        prepared = _check(spark, environment, located, guard, on_counts=recorder.on_counts)
        restarts = StepRestarts(spark, environment, located, guard, recorder)
        for warning in misspelt_settings(spark, environment.settings):
            recorder.record("warning", "", warning)
        for ready in prepared:
            restarts.record_warnings(ready)
        directories = {name: checkpoint.spark_directory for name, checkpoint in guard.checkpoints.items()}
        files, restored = bundle.run_files_directory, guard.restored_settings
        supervisor = QuerySupervisor(
            spark, environment, files, pipeline, directories, restored, recorder, stop, restarts
        )
        _run_steps(supervisor, guard, prepared, order.tables_read(bundle), follow=follow, once=once)


def check_pipelines(spark: SparkSession, bundle: Bundle) -> list[str]:
    """Check everything that a run of each pipeline would check, but write nothing. Return the warnings."""
    guards = [StartGuard(spark, bundle, name, order.pipeline_steps(bundle, name)) for name in bundle.pipelines]
    prepared = _check(spark, bundle.environment, order.all_steps(bundle), *guards)
    warnings = [(step.step.name, warning) for step in prepared for warning in step.warnings]
    warnings += [(name, note) for guard in guards for name in guard.checkpoints for note in guard.notes(name)]
    return [
        *misspelt_settings(spark, bundle.environment.settings),
        *(f"step {name!r}: {warning}" for name, warning in warnings),
    ]


def compare_with_checkpoints(
    spark: SparkSession, bundle: Bundle, pipeline: str, only: Sequence[str] = ()
) -> dict[str, StepChanges | None]:
    """Return how each step differs from the query that wrote its checkpoint; None for a checkpoint without a batch."""
    steps = order.select_steps(bundle, pipeline, only)
    guard = StartGuard(spark, bundle, pipeline, steps)
    located = [(bundle.locations_of(pipeline), step) for step in steps]
    prepared, problems = prepare_all(spark, located, bundle.environment)
    if problems:
        raise ConfigurationError.of(problems)
    guard.check_changes(prepared)
    return {step.name: guard.changes.get(step.name) for step in steps}


def _check(
    spark: SparkSession,
    environment: Environment,
    steps: Iterable[tuple[KeyLocations, Step]],
    *guards: StartGuard,
    on_counts: Callable[[str], OnCounts] = ignore_counts,
) -> list[PreparedStep]:
    """Prepare the steps. Raise the problems of all of them, of their tables and of the guards together."""
    refusals = [problem for guard in guards for problem in guard.check_pairs()]
    prepared, problems = prepare_all(spark, steps, environment, on_counts=on_counts)
    refusals += [problem for guard in guards for problem in guard.check_changes(prepared)]
    problems += [problem for step in prepared for problem in step.problems]
    if refusals:
        raise GuardError.of([*refusals, *problems])
    if problems:
        raise ConfigurationError.of(problems)
    return prepared


def is_unbounded(bundle: Bundle, pipeline: str, only: Sequence[str] = (), *, follow: bool, once: bool) -> bool:
    """Return whether a run would continue until it is stopped."""
    triggers = [bundle.environment.trigger_of(step.name) for step in order.select_steps(bundle, pipeline, only)]
    return not once and (follow or not all(is_bounded(trigger) for trigger in triggers))


def is_short(bundle: Bundle, pipeline: str, only: Sequence[str] = (), *, follow: bool, once: bool) -> bool:
    """Return whether a run would end by itself and has little to read.

    The amount counts only with the local engine: on a cluster, every run that would end by itself is short.
    """
    if is_unbounded(bundle, pipeline, only, follow=follow, once=once):
        return False
    is_local = isinstance(bundle.environment.engine, LocalEngine)
    return not (is_local and is_large(bundle, pipeline, order.select_steps(bundle, pipeline, only)))


def _run_steps(
    supervisor: QuerySupervisor,
    guard: StartGuard,
    prepared: Sequence[PreparedStep],
    tables_read: set[str],
    *,
    follow: bool,
    once: bool,
) -> None:
    """Start the steps in order, and supervise them until they end.

    `tables_read` are the names of all tables that steps of the bundle read. Raise StepError if steps failed,
    UnfinishedBatchError or KeyboardInterrupt if a batch was interrupted.
    """
    triggers = {step.step.name: supervisor.environment.trigger_of(step.step.name) for step in prepared}
    if once:
        triggers = {name: trigger if is_bounded(trigger) else "available_now" for name, trigger in triggers.items()}
    bounded = [step for step in prepared if is_bounded(triggers[step.step.name])]
    try:
        try:
            _start_in_order(supervisor, guard, prepared, tables_read, triggers)
            if follow and bounded:
                follow_loop.follow(supervisor, bounded)
            while supervisor.running and not supervisor.stop.is_set():
                supervisor.poll(POLL_INTERVAL_S)
        except (KeyboardInterrupt, UnfinishedBatchError):
            supervisor.abandon()
            raise
        finally:
            supervisor.stop_all()
    except KeyboardInterrupt as interrupt:
        # This call of `abandon` also returns the unfinished batches of the first call.
        raise type(interrupt)(supervisor.abandon()) from None
    except UnfinishedBatchError as error:
        supervisor.abandon()
        if supervisor.stop.signal is not None:
            interrupts.interrupt(supervisor.stop.signal, str(error))
        raise
    supervisor.raise_failures(step.step.name for step in prepared)


def _start_in_order(
    supervisor: QuerySupervisor,
    guard: StartGuard,
    prepared: Sequence[PreparedStep],
    tables_read: set[str],
    triggers: Mapping[str, Trigger],
) -> None:
    """Start each step as soon as all steps whose tables it reads have ended or are unbounded and have been started.

    Return when all steps have been started and the bounded ones have ended. Steps that do not depend on each other run
    in parallel, which makes a cold run of the pipeline orders 10 % faster.
    """
    waiting = list(prepared)
    steps = [each.step for each in prepared]
    upstream = {step.name: set(order.upstream_steps(step, steps)) for step in steps}
    bounded: dict[str, PreparedStep] = {}  # bounded steps that are running

    def create(step: PreparedStep, *, only_needed: bool = False) -> None:
        quarantine = quarantine_table(step.step, supervisor.environment)
        is_read = quarantine is not None and quarantine.name in tables_read
        create_tables(
            supervisor.spark,
            step.step,
            supervisor.environment,
            step.schema,
            with_quarantine=step.has_verdicts and is_read and not only_needed,
            only_needed=only_needed,
        )

    while (waiting or bounded) and not supervisor.stop.is_set():
        unfinished = {step.step.name for step in waiting} | bounded.keys()
        for step in [each for each in waiting if not unfinished & upstream[each.step.name]]:
            ends_by_itself = is_bounded(triggers[step.step.name])
            if ends_by_itself and len(bounded) >= _max_parallel(supervisor.environment):
                break
            waiting.remove(step)
            create(step, only_needed=ends_by_itself)
            add_columns(supervisor.spark, step.step, supervisor.environment, step.schema)
            guard.record_start(step.step.name)
            supervisor.start(step, triggers[step.step.name])
            if ends_by_itself:
                bounded[step.step.name] = step
        supervisor.poll(POLL_INTERVAL_S / len(bounded) if bounded else 0)
        for name in bounded.keys() - supervisor.running.keys():
            create(bounded.pop(name))  # other steps read its tables, which do not exist yet if it wrote no rows
            guard.record_tables(name)


def _max_parallel(environment: Environment) -> int:
    return environment.engine.cores if isinstance(environment.engine, LocalEngine) else MAX_PARALLEL_STEPS


def _without_errors(clean_up: Callable[[], None]) -> None:
    """Call `clean_up`. Ignore its errors, such as those after the JVM has died: they would hide how the run ended."""
    with suppress(Exception):
        clean_up()
