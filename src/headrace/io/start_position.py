"""Where a new checkpoint starts to read an input: the positions of `headrace reset --from`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TopicOffsets = dict[str, dict[str, int]]  # the next offset of each partition of each topic
ReachedOffset = Mapping[str, Any]  # the offset of an input that a checkpoint has reached, as Spark stores it


@dataclass(frozen=True)
class Position:
    """A value of `--from`: the beginning if no field is set."""

    time: datetime | None = None  # without a zone, it is in the time zone of the session
    version: int | None = None  # of a table
    offsets: TopicOffsets | None = None
    is_checkpoint: bool = False  # where the previous checkpoint has stopped

    @property
    def is_beginning(self) -> bool:
        """Whether this is the beginning of an input."""
        return self == Position()


@dataclass(frozen=True)
class InputStart:
    """Where one input starts to read, as options of Spark's reader."""

    options: dict[str, str] = field(default_factory=dict)  # empty: where a new checkpoint starts
    text: str = "from the beginning"
    repeats: bool = True  # it may read rows that the previous checkpoint has read
    skipped: str = ""  # what is never read, as text: "3 records"
    is_beginning: bool = False


def parse_position(text: str) -> Position:
    """Return the position that a value of `--from` names. Raise ValueError with a message if it names none."""
    if text == "beginning":
        return Position()
    if text == "checkpoint":
        return Position(is_checkpoint=True)
    if text.isascii() and text.isdigit():
        return Position(version=int(text))
    if text.startswith("{"):
        return Position(offsets=_parse_offsets(text))
    try:
        return Position(time=datetime.fromisoformat(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is not beginning, checkpoint, a time (2026-01-31T12:00), a version of a table (42), or offsets "
            'of topics ({"orders": {"0": 120, "1": 98}})'
        ) from None


def count_text(count: int, unit: str) -> str:
    """Return a number with its unit: "1 record", "2 records", or an empty text for 0."""
    return f"{count} {unit}{'' if count == 1 else 's'}" if count else ""


def in_session_zone(spark: SparkSession, time: datetime) -> datetime:
    """Return the time in the time zone of the session."""
    name = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigurationError(
            f"the time zone of the session, {name}, is not a name of the IANA database",
            fix="set spark.sql.session.timeZone to a name like Europe/Berlin, or pass a version or offsets",
        ) from None
    return time.astimezone(zone) if time.tzinfo else time.replace(tzinfo=zone)


def _parse_offsets(text: str) -> TopicOffsets:
    try:
        return {
            topic: {str(int(partition)): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f'the offsets {text} are not of the form {{"orders": {{"0": 120, "1": 98}}}}') from None
