"""Build the query of a step: the path of a row from the step's inputs to its sinks.

`open_query` opens the inputs, applies the transform and opens the sink. In most steps, the batch writer then writes
each batch to the sinks. Rows pass through no other code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import deduplicates
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, Step
from headrace.errors import ConfigurationError, HeadraceError, add_location
from headrace.expectations import verdict
from headrace.graph.resolve import bind_arguments, resolve
from headrace.io.sinks.batch_writer import BatchCounts, BatchWriter
from headrace.io.sinks.open_sink import open_sink
from headrace.io.sources.open_input import open_input
from headrace.io.watermarks import observe_event_times, without_watermark_marks
from headrace.runtime.unsupported_queries import transform_error

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
    """A step's query, ready to start."""

    inputs: Mapping[str, DataFrame]
    stream: DataFrame  # the rows given to the writer; a row-wise transform is applied to them later, to each batch
    writer: DataStreamWriter
    has_verdicts: bool  # the rows are checked, so some may be quarantined


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

    `pending` has the schema of each table that this run will create or add columns to. Empty inputs replace these
    tables.
    `locations` adds file and line to problems.
    """
    location = partial(locations.where, "steps", step.name)
    inputs = {}
    for name, read in step.reads.items():
        with add_location(location("reads", name)):
            inputs[name] = open_input(spark, read, environment, pending)
    with add_location(location("transform")):
        stream = without_watermark_marks(_apply_transform(step, observe_event_times(inputs, step)))
    batch_writer = BatchWriter(step, environment, transform=_batch_transform(step, environment), on_counts=on_counts)
    has_verdicts = verdict.has_verdict(stream) or bool(step.expect)
    with add_location(location("writes")):
        writer = open_sink(stream, step, environment, batch_writer, has_verdicts=has_verdicts)
    return StepQuery(inputs, stream, writer.outputMode(step.output), has_verdicts)


def with_first_version(step: Step, tables: Collection[str]) -> Step:
    """Return a copy of the step that reads the given tables, which this run has created, from their first version.

    Without a starting version, Delta first lists and sorts all files of the table, which takes 1.2 s of a cold run
    (Delta 4.4.0). Static inputs, inputs with `changes`, and inputs whose options set a start are not changed.
    """
    starts = {"startingVersion", "startingTimestamp"}
    reads = {
        name: read.model_copy(update={"options": {**read.options, "startingVersion": 0}})
        if read.table in tables and not (read.static or read.changes or starts & read.options.keys())
        else read
        for name, read in step.reads.items()
    }
    return step.model_copy(update={"reads": reads})


def _apply_transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the result of the step's transform.

    Return the stream unchanged if the step has no transform, or a row-wise one, which the batch writer applies.
    """
    if step.transform is None or step.transforms_batches:
        return next(frame for frame in inputs.values() if frame.isStreaming)
    # A deduplication must keep all bad rows. Each gets a unique key, so that none is a duplicate of another row.
    keys = step.with_.get("keys")
    checked = {name: frame for name, frame in inputs.items() if verdict.has_verdict(frame)}
    if checked and deduplicates(step) and keys and isinstance(keys, list):
        inputs = {**inputs, **{name: verdict.key_bad_rows(frame) for name, frame in checked.items()}}
        step = step.model_copy(update={"with_": {**step.with_, "keys": [*keys, verdict.BAD_ROW_KEY]}})
    return call_transform(step, inputs)


def _batch_transform(step: Step, environment: Environment) -> Callable[[DataFrame], DataFrame] | None:
    """Return a function that applies a row-wise transform to a batch, reading static inputs again.

    Return None if the transform is not row-wise.
    """
    if not step.transforms_batches:
        return None

    def transform(batch: DataFrame) -> DataFrame:
        inputs = {
            name: open_input(batch.sparkSession, read, environment) if read.static else batch
            for name, read in step.reads.items()
        }
        return without_watermark_marks(call_transform(step, inputs))

    return transform


def written_rows(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows that the step writes for inputs without a verdict column.

    A row-wise transform is applied to the whole stream here, not to each batch.
    """
    if step.transform is None:
        return next(frame for frame in inputs.values() if frame.isStreaming)
    return call_transform(step, inputs)


def call_transform(step: Step, inputs: Mapping[str, DataFrame]) -> DataFrame:
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
