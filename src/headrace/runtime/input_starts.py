"""Where the streaming inputs of a reset step start to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.checkpoints.generations import Generation
from headrace.config.models import Environment, KafkaSource, Read, Setting, Source, Step
from headrace.config.spark_options import option
from headrace.errors import ConfigurationError, add_location
from headrace.io.delta import table_start
from headrace.io.delta.delta_table import Table, table_of
from headrace.io.delta.table_identity import table_identity
from headrace.io.sources import kafka_start
from headrace.io.start_position import InputStart, Position, ReachedOffset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The options of Spark's readers with which a bundle itself chooses the start.
START_OPTIONS = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp", "startingVersion")


def find_starts(
    spark: SparkSession,
    step: Step,
    environment: Environment,
    position: Position | None,
    *,
    truncated: Collection[str],
    reached: ReachedOffset | None,
) -> dict[str, InputStart]:
    """Return where each streaming input of a step starts to read. Raise ConfigurationError if one has no such position.

    Without a position, they start where new checkpoints start, as do the inputs that are tables in `truncated`.
    `reached` is the offset at which the previous checkpoint stopped. It is None if it is unknown: if the step has
    several streaming inputs, or a batch that was planned but not completed, or no batch at all.
    """
    starts = {}
    for name, read in step.reads.items():
        if not read.static:
            with add_location(f"input {name} of step {step.name}"):
                is_moved = position is not None and read.table not in truncated
                starts[name] = (
                    _find_start(spark, read, environment, position, reached)
                    if is_moved and position is not None
                    else InputStart(text=_default_start(read, environment))
                )
    return starts


def with_starts(step: Step, generation: Generation) -> Step:
    """Return the step with its inputs starting where the reset that made this generation has chosen.

    Spark uses these options only for a checkpoint without a batch.
    """
    if not generation.starts:
        return step
    reads = {
        name: read.model_copy(update={"options": {**read.options, **generation.starts.get(name, {})}})
        for name, read in step.reads.items()
    }
    return step.model_copy(update={"reads": reads})


def start_settings(generations: Iterable[Generation]) -> Mapping[str, Setting]:
    """Return the settings that a session needs while it runs the steps of these generations."""
    options = {name for generation in generations for start in generation.starts.values() for name in start}
    return table_start.ALLOW_FUTURE_START if "startingTimestamp" in options else {}


def _find_start(
    spark: SparkSession, read: Read, environment: Environment, position: Position, reached: ReachedOffset | None
) -> InputStart:
    own_start = _own_start(read, environment)
    if own_start:
        raise ConfigurationError(
            f"option {own_start} already sets where this input starts",
            fix=f"remove the option {own_start}, or reset without --from",
        )
    table = table_of(environment, read.table) if read.table else None
    source = environment.sources[str(read.source)] if read.source else None
    reached = _own_offset(spark, table, source, reached)
    if position.is_checkpoint and reached is None and (table or isinstance(source, KafkaSource)):
        raise ConfigurationError(
            "the position of the previous checkpoint is unknown: the step has several streaming inputs or reads "
            "another one now, or its checkpoint has no batch or an unfinished one",
            fix="pass --from with a time or another position",
        )
    if table is not None:
        return table_start.find_start(spark, table, position, reached)
    if isinstance(source, KafkaSource):
        return kafka_start.find_start(spark, source, position, reached)
    if position.is_beginning:
        return InputStart(is_beginning=True)
    raise ConfigurationError(
        f"a source of kind {source.kind if source else ''} can only be read from the beginning",
        fix="reset without --from; to skip files, move them to another directory first",
    )


def _own_offset(
    spark: SparkSession, table: Table | None, source: Source | None, reached: ReachedOffset | None
) -> ReachedOffset | None:
    """Return the offset if it belongs to this table or to these topics; the step may have read another input before."""
    if reached is None:
        return None
    if table is not None:
        identity = table_identity(spark, table)
        return reached if identity and reached.get("reservoirId") == identity[0] else None
    if not isinstance(source, KafkaSource) or not all(isinstance(partitions, dict) for partitions in reached.values()):
        return None
    return {topic: each for topic, each in reached.items() if not source.topics or topic in source.topics} or None


def _default_start(read: Read, environment: Environment) -> str:
    """Return as text where a new checkpoint starts to read an input."""
    source = environment.sources.get(str(read.source)) if read.source else None
    own_start = _own_start(read, environment)
    if own_start:
        return f"from the position in its option {own_start}"
    if isinstance(source, KafkaSource) and source.start == "latest":
        return "from its end, because of start: latest"
    return "from the beginning"


def _own_start(read: Read, environment: Environment) -> str:
    """Return the name of an option with which the input or its source chooses where it starts; empty if none is set."""
    source = environment.sources.get(str(read.source)) if read.source else None
    options = {**(source.options if source else {}), **read.options}
    return next((name for name in START_OPTIONS if option(options, name) is not None), "")
