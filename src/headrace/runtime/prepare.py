"""Prepare steps: open their queries and validate them. This module writes no data.

`open_query` builds the path of a row from a step's inputs to its sink. The sink of most steps is the batch writer,
which is the only other code that rows pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import QUARANTINE_SUFFIX, deduplicates
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, Step
from headrace.errors import ConfigurationError, HeadraceError, Problem, add_location
from headrace.expectations import row_checks, verdict
from headrace.graph.resolve import bind_arguments, resolve
from headrace.io.delta import delta_merge
from headrace.io.sinks import kafka_sink, table_sink
from headrace.io.sinks.batch_writer import BatchCounts, BatchWriter
from headrace.io.sinks.open_sink import open_sink, uses_spark_sink
from headrace.io.sinks.quarantine import quarantine_schema
from headrace.io.sources.open_input import open_input, table_exists
from headrace.io.watermarks import observe_event_times, unbounded_state, without_watermark_marks
from headrace.runtime.session_settings import session_settings
from headrace.runtime.step_signature import step_signature
from headrace.runtime.unsupported_queries import has_timers, require_supported, transform_error
from headrace.signatures.signature import Signature
from headrace.spark.columns import require_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

NO_LOCATIONS = KeyLocations("")  # for problems without file and line
OnCounts = Callable[[int, BatchCounts], None]  # called with the number of a batch and its counts


def ignore_counts(step: str) -> OnCounts:
    """Return a function that ignores the counts of a step's batches: for steps that are only checked."""
    return lambda batch, counts: None


@dataclass(frozen=True)
class StepQuery:
    """A step's query, ready to start: its inputs, its result, and the writer of the result."""

    inputs: Mapping[str, DataFrame]
    result: DataFrame
    writer: DataStreamWriter
    has_verdicts: bool  # the rows are checked, so some may be quarantined


@dataclass(frozen=True)
class PreparedStep:
    """A validated step. Its query can be started again whenever the previous one has ended."""

    step: Step
    schema: StructType  # of the rows that the step writes
    has_verdicts: bool  # the rows are checked, so some may be quarantined
    uses_spark_sink: bool
    has_timers: bool = False  # processing-time timers: with them, Spark starts batches for ever
    pending_tables: frozenset[str] = frozenset()  # inputs that this run will create; then the query is opened
    warnings: tuple[str, ...] = ()
    writer: DataStreamWriter | None = None  # None if tables were pending when the step was prepared
    stream: DataFrame | None = None  # the rows given to the writer
    signature: Signature | None = None  # None if it could not be computed


def open_query(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    *,
    on_counts: OnCounts,
    pending: Mapping[str, StructType] | None = None,
    locations: KeyLocations = NO_LOCATIONS,
) -> StepQuery:
    """Return the step's query: open its inputs, apply its transform, open its sink.

    `pending` has the schema of each table that this run will create. Empty inputs replace these tables.
    `locations` adds file and line to problems.
    """
    location = partial(locations.where, "steps", step.name)
    inputs = {}
    for name, read in step.reads.items():
        with add_location(location("reads", name)):
            inputs[name] = open_input(spark, read, environment, pending)
    with add_location(location("transform")):
        result = without_watermark_marks(_apply_transform(step, observe_event_times(inputs, step)))
    batch_writer = BatchWriter(step, environment, transform=_batch_transform(step, environment), on_counts=on_counts)
    has_verdicts = verdict.has_verdict(result) or bool(step.expect)
    with add_location(location("writes")):
        writer = open_sink(result, step, environment, batch_writer, has_verdicts=has_verdicts)
    return StepQuery(inputs, result, writer.outputMode(step.output), has_verdicts)


def prepare(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    *,
    on_counts: OnCounts,
    pending: Mapping[str, StructType],
    locations: KeyLocations = NO_LOCATIONS,
) -> PreparedStep:
    """Open a step's query, validate it and return the prepared step. See `open_query` for the arguments."""
    query = open_query(spark, step, environment, on_counts=on_counts, pending=pending, locations=locations)
    rows = _validate(query, step, environment, locations)
    pending_tables = frozenset(str(read.table) for read in step.reads.values() if read.table in pending)
    signature = step_signature(spark, step, environment, query.inputs, partial(_transformed_rows, step))
    return PreparedStep(
        step,
        rows.schema,
        query.has_verdicts,
        uses_spark_sink(step, environment, has_verdicts=query.has_verdicts),
        has_timers(query.result),
        pending_tables,
        tuple(unbounded_state(query.result, step)),
        None if pending_tables else query.writer,
        query.result,
        signature,
    )


def prepare_all(
    spark: SparkSession,
    steps: Iterable[tuple[KeyLocations, Step]],
    environment: Environment,
    *,
    on_counts: Callable[[str], OnCounts] = ignore_counts,
) -> list[PreparedStep]:
    """Prepare the steps in order. Raise ConfigurationError with the problems of all steps.

    A step that reads a table of a step with problems is not prepared: it would only report their consequences.
    `on_counts` returns, for the name of a step, the function that takes the counts of its batches.
    """
    prepared: list[PreparedStep] = []
    problems: list[Problem] = []
    pending: dict[str, StructType] = {}
    unknown: set[str] = set()  # tables whose schema is unknown, because the step that writes them has problems
    for locations, step in steps:
        tables = {*step.tables_written, *(name + QUARANTINE_SUFFIX for name in step.tables_written[:1])}
        if any(read.table in unknown for read in step.reads.values()):
            unknown |= tables
            continue
        try:
            location = locations.where("steps", step.name, "settings")
            with add_location(location), session_settings(spark, step.settings):
                ready = prepare(
                    spark, step, environment, on_counts=on_counts(step.name), pending=pending, locations=locations
                )
        except HeadraceError as error:
            problems += error.problems
            unknown |= {name for name in tables if not table_exists(spark, name, environment)}
            continue
        prepared.append(ready)
        schemas = dict.fromkeys(step.tables_written, ready.schema)
        if ready.has_verdicts:
            schemas |= {name + QUARANTINE_SUFFIX: quarantine_schema() for name in step.tables_written[:1]}
        pending |= {name: schema for name, schema in schemas.items() if not table_exists(spark, name, environment)}
    if problems:
        raise ConfigurationError.of(problems)
    return prepared


def read_from_first_version(step: Step, tables: Collection[str]) -> Step:
    """Return a copy of the step that reads the given tables, which this run has created, from their first version.

    Without a starting version, Delta first lists and sorts all files of the table, which takes 1.2 s of a cold run
    (4.4.0). Inputs whose options set a start keep it.
    """
    starts = {"startingVersion", "startingTimestamp"}
    reads = {
        name: read.model_copy(update={"options": {**read.options, "startingVersion": 0}})
        if read.table in tables and not (read.static or read.changes or starts & read.options.keys())
        else read
        for name, read in step.reads.items()
    }
    return step.model_copy(update={"reads": reads})


def _validate(query: StepQuery, step: Step, environment: Environment, locations: KeyLocations) -> DataFrame:
    """Return the rows that the step writes. Raise ConfigurationError for problems that would otherwise fail a batch."""
    location = partial(locations.where, "steps", step.name)
    rows = query.result.drop(verdict.VERDICT, verdict.BAD_ROW_KEY)
    with add_location(location("transform")):
        if step.transforms_batches:
            inputs = {name: frame.drop(verdict.VERDICT) for name, frame in query.inputs.items()}
            rows = without_watermark_marks(_call_transform(step, inputs))
        require_supported(query.result, step, query.inputs)
        if step.copies_changes:
            table_sink.require_change_columns(rows, step)
            rows = rows.drop(*delta_merge.CHANGE_COLUMNS)
    with add_location(location("expect")):
        verdict.check_result_rows(rows, step.expect)
        row_checks.require_compatible_values(rows, step.expect)
    for number, sink in enumerate(step.writes):
        with add_location(location("writes", number)):
            columns = [*sink.keys, *filter(None, [sink.sequence]), *sink.partition_by]
            require_columns(rows, f"sink {number + 1}", columns, exact=True)
            require_columns(rows, f"sink {number + 1}", sink.cluster_by)
            if sink.topic:
                kafka_sink.require_record_columns(rows, environment.topics[sink.topic].topic)
            table_sink.require_target_columns(rows, step, sink, environment)
    return rows


def _apply_transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the result of the step's transform.

    Return the stream unchanged if the step has no transform, or a row-wise one, which the batch writer applies.
    """
    if step.transform is None or step.transforms_batches:
        return next(frame for frame in inputs.values() if frame.isStreaming)
    # Bad rows pass through a deduplication: each gets a unique key, so that none is a duplicate of another row.
    keys = step.with_.get("keys")
    checked = {name: frame for name, frame in inputs.items() if verdict.has_verdict(frame)}
    if checked and deduplicates(step) and keys and isinstance(keys, list):
        inputs = {**inputs, **{name: verdict.key_bad_rows(frame) for name, frame in checked.items()}}
        step = step.model_copy(update={"with_": {**step.with_, "keys": [*keys, verdict.BAD_ROW_KEY]}})
    return _call_transform(step, inputs)


def _batch_transform(step: Step, environment: Environment) -> Callable[[DataFrame], DataFrame] | None:
    """Return a function that applies a row-wise transform to a batch, reading static inputs again; None without one."""
    if not step.transforms_batches:
        return None

    def transform(batch: DataFrame) -> DataFrame:
        inputs = {
            name: open_input(batch.sparkSession, read, environment) if read.static else batch
            for name, read in step.reads.items()
        }
        return without_watermark_marks(_call_transform(step, inputs))

    return transform


def _transformed_rows(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows that the step writes for inputs without verdicts. A row-wise transform gets the stream too."""
    if step.transform is None:
        return next(frame for frame in inputs.values() if frame.isStreaming)
    return _call_transform(step, inputs)


def _call_transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the result of the step's function. Raise ConfigurationError if it fails or returns no DataFrame."""
    function = resolve(str(step.transform))
    arguments, settings = bind_arguments(step, function, inputs)
    try:
        result = function(*arguments, **settings)
    except HeadraceError:
        raise
    except Exception as error:
        raise transform_error(error, f"{step.transform} failed") from error
    from pyspark.sql import DataFrame

    if not isinstance(result, DataFrame):
        raise ConfigurationError(
            f"{step.transform} returned a {type(result).__name__}",
            fix="return the DataFrame that the step writes",
        )
    return result
