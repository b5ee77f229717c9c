"""Prepare steps: open their queries and validate them. This module writes no data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, Step
from headrace.errors import ConfigurationError, HeadraceError, Problem, add_location
from headrace.expectations import row_checks, verdict
from headrace.io.delta import delta_merge
from headrace.io.sinks import kafka_sink, table_sink, target_table
from headrace.io.sinks.open_sink import uses_spark_sink
from headrace.io.sinks.quarantine import quarantine_schema, tables_with_quarantine
from headrace.io.sources.open_input import table_exists
from headrace.io.watermarks import unbounded_state, without_watermark_marks
from headrace.runtime.session_settings import session_settings
from headrace.runtime.step_query import (
    NO_LOCATIONS,
    OnCounts,
    StepQuery,
    call_transform,
    ignore_counts,
    open_query,
    written_rows,
)
from headrace.runtime.step_signature import step_signature
from headrace.runtime.unsupported_queries import has_timers, require_supported
from headrace.signatures.signature import Signature
from headrace.spark.columns import require_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class PreparedStep:
    """A validated step. Its query can be started again after it has ended."""

    step: Step
    schema: StructType  # of the rows that the step writes
    has_verdicts: bool  # the rows are checked, so some may be quarantined
    uses_spark_sink: bool
    has_timers: bool = False  # with processing-time timers, Spark starts batches without new rows, so no trigger ends
    created_tables: frozenset[str] = frozenset()  # tables that the step reads and that this run will create
    warnings: tuple[str, ...] = ()
    # None if the step reads a table that this run will create or add columns to. The query is opened again afterwards.
    writer: DataStreamWriter | None = None
    stream: DataFrame | None = None  # the rows given to the writer
    inputs: Mapping[str, DataFrame] = field(default_factory=dict)
    signature: Signature | None = None  # None if it could not be computed
    problems: tuple[Problem, ...] = ()  # of tables that exist and cannot take the step's rows


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
    pending_names = {str(read.table) for read in step.reads.values() if read.table in pending}
    signature = step_signature(spark, step, query.inputs, partial(written_rows, step))
    spark_sink = uses_spark_sink(step, environment, has_verdicts=query.has_verdicts)
    return PreparedStep(
        step,
        rows.schema,
        query.has_verdicts,
        spark_sink,
        has_timers(query.stream),
        frozenset(name for name in pending_names if not table_exists(spark, name, environment)),
        (*unbounded_state(query.stream, step), *target_table.added_column_notes(rows, step, environment)),
        None if pending_names else query.writer,
        query.stream,
        query.inputs,
        signature,
        tuple(_table_problems(rows, step, environment, locations, spark_sink=spark_sink)),
    )


def prepare_all(
    spark: SparkSession,
    steps: Iterable[tuple[KeyLocations, Step]],
    environment: Environment,
    *,
    on_counts: Callable[[str], OnCounts] = ignore_counts,
) -> tuple[list[PreparedStep], list[Problem]]:
    """Prepare the steps in order. Return the prepared steps, and the problems of those that cannot be prepared.

    A step is not prepared if a table that it reads is missing because another step has problems: it would only report
    the consequences of these.
    `on_counts` returns, for the name of a step, the function that takes the counts of its batches.
    """
    prepared: list[PreparedStep] = []
    problems: list[Problem] = []
    pending: dict[str, StructType] = {}
    # Tables whose readers cannot be prepared: those that a step with problems has not created yet, and all tables of a
    # step that was not prepared for this reason.
    unreadable: set[str] = set()
    for locations, step in steps:
        tables = tables_with_quarantine(step, environment)
        if any(read.table in unreadable for read in step.reads.values()):
            unreadable |= tables
            continue
        try:
            location = locations.where("steps", step.name, "settings")
            with add_location(location), session_settings(spark, step.settings):
                ready = prepare(
                    spark, step, environment, on_counts=on_counts(step.name), pending=pending, locations=locations
                )
        except HeadraceError as error:
            problems += error.problems
            unreadable |= {name for name in tables if not table_exists(spark, name, environment)}
            continue
        prepared.append(ready)
        pending |= pending_tables(spark, ready, environment)
    return prepared, problems


def pending_tables(spark: SparkSession, ready: PreparedStep, environment: Environment) -> dict[str, StructType]:
    """Return the tables that a step will create or add columns to, each with the schema that it will have."""
    step = ready.step
    schemas = {
        str(sink.table): target_table.future_schema(spark, ready.schema, sink, environment)
        for sink in step.writes
        if sink.table
    }
    for name in step.tables_written[:1] if ready.has_verdicts else ():
        quarantine = name + QUARANTINE_SUFFIX
        schemas[quarantine] = None if table_exists(spark, quarantine, environment) else quarantine_schema()
    return {name: schema for name, schema in schemas.items() if schema is not None}


def _table_problems(
    rows: DataFrame, step: Step, environment: Environment, locations: KeyLocations, *, spark_sink: bool
) -> Iterator[Problem]:
    for number, sink in enumerate(step.writes):
        try:
            with add_location(locations.where("steps", step.name, "writes", number)):
                target_table.require_compatible_table(rows, sink, environment, spark_sink=spark_sink)
        except ConfigurationError as error:
            yield from error.problems


def _validate(query: StepQuery, step: Step, environment: Environment, locations: KeyLocations) -> DataFrame:
    """Return the rows that the step writes. Raise ConfigurationError for problems that would otherwise fail a batch."""
    location = partial(locations.where, "steps", step.name)
    rows = query.stream.drop(verdict.VERDICT, verdict.BAD_ROW_KEY)
    with add_location(location("transform")):
        if step.transforms_batches:
            inputs = {name: frame.drop(verdict.VERDICT) for name, frame in query.inputs.items()}
            rows = without_watermark_marks(call_transform(step, inputs))
        require_supported(query.stream, step, query.inputs)
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
    return rows
