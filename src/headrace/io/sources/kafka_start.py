"""Where a new checkpoint starts to read topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.models import KafkaSource
from headrace.errors import ConfigurationError
from headrace.io.start_position import InputStart, Position, ReachedOffset, TopicOffsets, count_text, in_session_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_start(
    spark: SparkSession, source: KafkaSource, position: Position, reached: ReachedOffset | None
) -> InputStart:
    """Return where the topics of a source start to be read. See `find_start` in `io.delta.table_start`."""
    if position.is_beginning:
        return InputStart({"startingOffsets": "earliest"}, is_beginning=True)
    if position.version is not None:
        raise ConfigurationError(
            "topics have no versions", fix='pass a time, or offsets: --from \'{"orders": {"0": 120, "1": 98}}\''
        )
    if position.time is not None:
        time = in_session_zone(spark, position.time)
        # With this strategy, a partition that has no record of this time or later is read from its end.
        options = {"startingOffsetsByTimestampStrategy": "latest"}
        options["startingTimestamp"] = str(int(time.timestamp() * 1000))
        return InputStart(options, f"from {time.isoformat(' ')}")
    offsets = dict(reached or {}) if position.is_checkpoint else position.offsets or {}
    _require_partitions(source, offsets, reached or {})
    text = json.dumps(offsets)
    gaps = _gaps(offsets, reached or {})
    return InputStart(
        {"startingOffsets": text},
        "from where the previous checkpoint stopped" if position.is_checkpoint else f"from the offsets {text}",
        repeats=not gaps or min(gaps) < 0,
        skipped=count_text(sum(gap for gap in gaps if gap > 0), "record"),
    )


def _require_partitions(source: KafkaSource, offsets: TopicOffsets, reached: Mapping[str, Mapping[str, int]]) -> None:
    """Raise ConfigurationError if the offsets have another topic, or lack a partition that is known."""
    unknown = sorted(offsets.keys() - set(source.topics)) if source.topics else []
    if unknown:
        raise ConfigurationError(
            f"topic {unknown[0]!r} is not one of the source's topics",
            fix=f"give the offsets of: {', '.join(source.topics)}",
        )
    known = [(topic, partition) for topic, partitions in reached.items() for partition in partitions]
    for topic, partition in sorted(known):
        if partition not in offsets.get(topic, {}):
            raise ConfigurationError(
                f"the offsets lack partition {partition} of topic {topic!r}",
                fix="give the offset of each partition; -2 is its beginning, -1 its end",
            )


def _gaps(offsets: TopicOffsets, reached: Mapping[str, Mapping[str, int]]) -> list[int]:
    """Return for each partition how many records lie between the offset of a checkpoint and this one.

    A negative number means that records are read again, or may be: -1 and -2 as offsets are the end and the beginning.
    """
    return [
        offsets[topic][partition] - offset
        for topic, partitions in reached.items()
        for partition, offset in partitions.items()
    ]
