"""Prepares a step: its inputs opened, its transform applied, its sink ready to start. Nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import DEDUPLICATE, QUARANTINE_SUFFIX
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, Step
from headrace.errors import ConfigurationError, HeadraceError, Problem, add_location
from headrace.expectations import row_checks, verdict
from headrace.graph.resolve import bind_arguments, resolve
from headrace.io import watermarks
from headrace.io.delta import delta_merge
from headrace.io.sinks import kafka_sink, open_sink, quarantine
from headrace.io.sinks.batch_writer import BatchCounts, BatchWriter
from headrace.io.sources import open_input
from headrace.runtime.session_settings import session_settings
from headrace.runtime.unsupported_queries import has_timers, require_supported, transform_error
from headrace.spark import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

NO_LINES = KeyLocations("")


@dataclass(frozen=True)
class PreparedStep:
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
    note: Callable[[int, BatchCounts], None],
    to_come: Mapping[str, StructType],
    lines: KeyLocations = NO_LINES,
) -> PreparedStep:
    """The way of a row: open the inputs, transform, open the sink. `lines` say where a mistake stands."""
    at = partial(lines.where, "steps", step.name)
    inputs = {}
    for name, read in step.reads.items():
        with add_location(at("reads", name)):
            inputs[name] = open_input.open_input(spark, read, environment, to_come)
    with add_location(at("transform")):
        frame = watermarks.without_watermark(_transform(step, inputs))
    judged = verdict.has_verdict(frame) or bool(step.expect)
    batch_writer = BatchWriter(step, environment, transform=_batch_transform(step, environment), note=note)
    with add_location(at("writes")):
        writer = open_sink.open_sink(frame, step, environment, batch_writer, judged=judged)

    good = frame.drop(verdict.VERDICT, verdict.BAD_ROW_KEY)
    with add_location(at("transform")):
        if open_sink.transforms_batches(step):
            good = watermarks.without_watermark(_call(step, _without_verdict(inputs)))
        require_supported(frame, step, inputs)
        if step.copies_changes:
            open_sink.require_change_columns(good, step)
            good = good.drop(*delta_merge.CHANGE_COLUMNS)
    with add_location(at("expect")):
        verdict.check_result_rows(good, step.expect)  # in the batches it would come too late
        row_checks.require_compatible_values(good, step.expect)
    for number, sink in enumerate(step.writes):
        with add_location(at("writes", number)):
            whole = [*sink.keys, *filter(None, [sink.sequence]), *sink.partition_by]
            columns.require_columns(good, f"sink {number + 1}", whole, exact=True)
            columns.require_columns(good, f"sink {number + 1}", sink.cluster_by)
            if sink.topic:
                kafka_sink.require_record_columns(good, environment.topics[sink.topic].topic)
            open_sink.require_target_columns(good, step, sink, environment)
    awaits = frozenset(str(read.table) for read in step.reads.values() if read.table in to_come)
    native = open_sink.uses_spark_sink(step, environment, judged=judged)
    writer = writer.outputMode(step.output)
    warnings = tuple(watermarks.unbounded_state(frame, step))
    return PreparedStep(step, writer, good.schema, judged, native, has_timers(frame), awaits, warnings)


def prepare_all(
    spark: SparkSession,
    steps: Iterable[tuple[KeyLocations, Step]],
    environment: Environment,
    *,
    note: Callable[[str], Callable[[int, BatchCounts], None]] = lambda step: lambda batch, counts: None,
) -> list[PreparedStep]:
    """Prepares all steps in order, writing nothing; tables still to be made are stood in for. Raises all problems."""
    prepared: list[PreparedStep] = []
    problems: list[Problem] = []
    to_come: dict[str, StructType] = {}
    for lines, step in steps:
        try:
            with add_location(lines.where("steps", step.name, "settings")), session_settings(spark, step.settings):
                ready = prepare(spark, step, environment, note=note(step.name), to_come=to_come, lines=lines)
        except HeadraceError as error:
            problems += error.problems
            continue
        prepared.append(ready)
        made = dict.fromkeys(step.tables_written, ready.schema)
        if ready.judged:
            made |= {name + QUARANTINE_SUFFIX: quarantine.quarantine_schema() for name in step.tables_written[:1]}
        to_come |= {name: of for name, of in made.items() if not open_input.table_exists(spark, name, environment)}
    if problems:
        raise ConfigurationError.of(problems)
    return prepared


def read_from_first_version(step: Step, tables: Collection[str]) -> Step:
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


def _transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    if step.transform is None or open_sink.transforms_batches(step):
        return _only_stream(inputs)
    if step.transform == DEDUPLICATE:
        judged = [name for name, frame in inputs.items() if verdict.has_verdict(frame)]
        inputs = {name: verdict.key_bad_rows(f) if name in judged else f for name, f in inputs.items()}
        keys = step.with_.get("keys")
        if judged and keys and isinstance(keys, list):  # else the function itself says what is wrong
            step = step.model_copy(update={"with_": {**step.with_, "keys": [*keys, verdict.BAD_ROW_KEY]}})
    return _call(step, inputs)


def _batch_transform(step: Step, environment: Environment) -> Callable[[DataFrame], DataFrame] | None:
    """A row-wise transform, applied to the good rows of one batch; static inputs are read anew for each."""
    if not open_sink.transforms_batches(step):
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
    args, named = bind_arguments(step, function, inputs)
    try:
        frame = function(*args, **named)
    except HeadraceError:
        raise
    except Exception as error:
        raise transform_error(error, f"{step.transform} failed") from error
    from pyspark.sql import DataFrame as Frame

    if not isinstance(frame, Frame):
        raise ConfigurationError(
            f"{step.transform} returned a {type(frame).__name__}",
            fix="return the DataFrame that the step writes",
        )
    return frame


def _only_stream(inputs: Mapping[str, DataFrame]) -> DataFrame:
    return next(frame for frame in inputs.values() if frame.isStreaming)


def _without_verdict(inputs: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    return {name: frame.drop(verdict.VERDICT) for name, frame in inputs.items()}
