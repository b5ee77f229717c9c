"""Prepares a step: its inputs opened, its transform applied, its sink ready to start. Nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.config.expectation_scope import DEDUPLICATE, QUARANTINE
from headrace.config.locations import Lines
from headrace.config.models import Environment, Setting, Step
from headrace.errors import ConfigurationError, HeadraceError, Problem, in_a_line, located
from headrace.expectations import row_checks, verdict
from headrace.graph.resolve import bind, resolve
from headrace.io import watermarks
from headrace.io.delta import delta_merge
from headrace.io.sinks import kafka_sink, open_sink
from headrace.io.sinks.batch_writer import BatchWriter, Counts
from headrace.io.sources import open_input

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

NO_LINES = Lines("")
TIMERS = re.compile(r"(?:GroupsInPandasWithState|TransformWithState).*ProcessingTime")  # as plans say it (4.2.0)


@dataclass(frozen=True)
class Prepared:
    """A step that can start: as often as wanted, one run after the other."""

    step: Step
    writer: DataStreamWriter
    schema: StructType
    judged: bool
    native: bool  # written by Spark's own sink
    has_timers: bool = False  # so that Spark would always have another batch to do
    awaits: frozenset[str] = frozenset()  # tables still to be made, for which an empty stand-in is read
    warnings: tuple[str, ...] = ()


def prepare(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    *,
    note: Callable[[int, Counts], None],
    to_come: Mapping[str, StructType],
    lines: Lines = NO_LINES,
) -> Prepared:
    """The way of a row: open the inputs, transform, open the sink. `lines` say where a mistake stands."""
    at = partial(lines.where, "steps", step.name)
    inputs = {}
    for name, read in step.reads.items():
        with located(at("reads", name)):
            inputs[name] = open_input.open_input(spark, read, environment, to_come)
    with located(at("transform")):
        frame = watermarks.without_watermark(_transform(step, inputs))
    judged = verdict.is_judged(frame) or bool(step.expect)
    batch_writer = BatchWriter(step, environment, transform=_batch_transform(step, environment), note=note)
    with located(at("writes")):
        writer = open_sink.open_sink(frame, step, environment, batch_writer, judged=judged)

    good = frame.drop(verdict.VERDICT, verdict.UNIQUE)
    with located(at("transform")):
        if open_sink.batch_transform(step):
            good = watermarks.without_watermark(_call(step, _without_verdict(inputs)))
        refuse_unsupported(frame, step, inputs)
        if step.copies_changes:
            open_sink.require_change_columns(good, step)
            good = good.drop(*delta_merge.CHANGE_COLUMNS)
    with located(at("expect")):
        verdict.judge_result(good, step.expect)  # in the batches it would come too late
        row_checks.require_fitting(good, step.expect)
    for number, sink in enumerate(step.writes):
        with located(at("writes", number)):
            whole = [*sink.keys, *filter(None, [sink.sequence]), *sink.partition_by]
            row_checks.require_columns(good, f"sink {number + 1}", whole, whole=True)
            row_checks.require_columns(good, f"sink {number + 1}", sink.cluster_by)
            if sink.topic:
                kafka_sink.require_sendable(good, environment.topics[sink.topic].topic)
            open_sink.refuse_lost_columns(good, step, sink, environment)
    awaits = frozenset(str(read.table) for read in step.reads.values() if read.table in to_come)
    native = open_sink.is_native(step, environment, judged=judged)
    writer = writer.outputMode(step.output)
    warnings = tuple(watermarks.unbounded_state(frame, step))
    return Prepared(step, writer, good.schema, judged, native, has_timers(frame), awaits, warnings)


def rehearse(
    spark: SparkSession,
    steps: Iterable[tuple[Lines, Step]],
    environment: Environment,
    *,
    note: Callable[[str], Callable[[int, Counts], None]] = lambda step: lambda batch, counts: None,
) -> list[Prepared]:
    """Prepares all steps in order, writing nothing; tables still to be made are stood in for. Raises all problems."""
    prepared: list[Prepared] = []
    problems: list[Problem] = []
    to_come: dict[str, StructType] = {}
    for lines, step in steps:
        try:
            with located(lines.where("steps", step.name, "settings")), settings(spark, step.settings):
                ready = prepare(spark, step, environment, note=note(step.name), to_come=to_come, lines=lines)
        except HeadraceError as error:
            problems += error.problems
            continue
        prepared.append(ready)
        made = dict.fromkeys(step.tables_written, ready.schema)
        if ready.judged:
            made |= {name + QUARANTINE: open_sink.quarantine_schema() for name in step.tables_written[:1]}
        to_come |= {name: of for name, of in made.items() if not open_input.table_exists(spark, name, environment)}
    if problems:
        raise ConfigurationError.of(problems)
    return prepared


def read_from_the_first(step: Step, tables: Collection[str]) -> Step:
    """The step, reading tables that this run has made from their first version on.

    Without being told, Delta first lists and sorts all files of a new stream's table (4.4.0): 1.2 s of a cold run.
    """
    chosen = {"startingVersion", "startingTimestamp"}
    reads = {
        name: read.model_copy(update={"options": {**read.options, "startingVersion": 0}})
        if read.table in tables and not (read.static or read.changes or chosen & read.options.keys())
        else read
        for name, read in step.reads.items()
    }
    return step.model_copy(update={"reads": reads})


@contextmanager
def settings(spark: SparkSession, chosen: Mapping[str, Setting]) -> Iterator[None]:
    """The session with a step's own settings: a query takes them along when it starts."""
    before: dict[str, str | None] = {}
    try:
        for key, wanted in chosen.items():
            was = spark.conf.get(key, None)
            _set(spark, key, wanted)
            before[key] = was
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def _set(spark: SparkSession, key: str, wanted: Setting) -> None:
    try:
        spark.conf.set(key, str(wanted))
    except Exception as error:
        raise ConfigurationError(
            f"setting {key} cannot be {wanted}: {in_a_line(error)}",
            fix="correct it, or give it under the environment's settings if it is one of the whole session",
        ) from error


def refuse_unsupported(frame: DataFrame, step: Step, inputs: Mapping[str, DataFrame]) -> None:
    """Raise ConfigurationError if Spark's own checker refuses the query (4.2.0: 0.5 ms)."""
    jvm: Any = getattr(frame.sparkSession, "_jvm", None)
    if jvm is None:
        return
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, step.output.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    frame_on_jvm: Any = frame._jdf
    try:
        checker.checkForStreaming(frame_on_jvm.queryExecution().analyzed(), mode)
    except Exception as error:
        refused = _cannot(error, "Spark cannot stream this query")
        if "without watermark" in str(error) or "without a watermark" in str(error):
            plan = frame_on_jvm.queryExecution().analyzed().toString()
            message = refused.problems[0].message
            raise ConfigurationError(message, fix=watermarks.missing_watermark(step, inputs, plan)) from error
        raise refused from error


def has_timers(frame: DataFrame) -> bool:
    """Whether its state waits for the clock; false where there is no way to the plan."""
    on_jvm: Any = getattr(frame, "_jdf", None)
    return on_jvm is not None and TIMERS.search(on_jvm.queryExecution().analyzed().toString()) is not None


def _transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    if step.transform is None or open_sink.batch_transform(step):
        return _only_stream(inputs)
    if step.transform == DEDUPLICATE:
        judged = [name for name, frame in inputs.items() if verdict.is_judged(frame)]
        inputs = {name: verdict.let_through(f) if name in judged else f for name, f in inputs.items()}
        keys = step.with_.get("keys")
        if judged and keys and isinstance(keys, list):  # else the function itself says what is wrong
            step = step.model_copy(update={"with_": {**step.with_, "keys": [*keys, verdict.UNIQUE]}})
    return _call(step, inputs)


def _batch_transform(step: Step, environment: Environment) -> Callable[[DataFrame], DataFrame] | None:
    """A row-wise transform, applied to the good rows of one batch; static inputs are read anew for each."""
    if not open_sink.batch_transform(step):
        return None

    def on(batch: DataFrame) -> DataFrame:
        inputs = {
            name: open_input.open_input(batch.sparkSession, read, environment) if read.static else batch
            for name, read in step.reads.items()
        }
        return watermarks.without_watermark(_call(step, inputs))

    return on


def _call(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    function = resolve(str(step.transform))
    args, named = bind(step, function, inputs)
    try:
        frame = function(*args, **named)
    except HeadraceError:
        raise
    except Exception as error:
        raise _cannot(error, f"{step.transform} failed") from error
    from pyspark.sql import DataFrame as Frame

    if not isinstance(frame, Frame):
        raise ConfigurationError(
            f"{step.transform} returned a {type(frame).__name__}",
            fix="return the DataFrame that the step writes",
        )
    return frame


def _cannot(error: Exception, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what}: {in_a_line(error)}",
        fix="change the transform, its settings or the step's output mode",
    )


def _only_stream(inputs: Mapping[str, DataFrame]) -> DataFrame:
    return next(frame for frame in inputs.values() if frame.isStreaming)


def _without_verdict(inputs: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    return {name: frame.drop(verdict.VERDICT) for name, frame in inputs.items()}
