"""Where a new checkpoint starts to read the stream of a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.errors import ConfigurationError
from headrace.io.delta.delta_table import Table
from headrace.io.start_position import InputStart, Position, ReachedOffset, count_text, in_session_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without this setting, a query fails if its start is later than the newest commit of the table (Delta 4.4.0).
ALLOW_FUTURE_START = {"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": True}


def find_start(spark: SparkSession, table: Table, position: Position, reached: ReachedOffset | None) -> InputStart:
    """Return where the stream of a table starts. `reached` is the offset of the previous checkpoint, if it is known.

    Raise ConfigurationError if the table has no such position.
    """
    if position.is_beginning:
        return InputStart(is_beginning=True)
    if position.offsets is not None:
        raise ConfigurationError("a table has no topics", fix="pass a time, or a version of the table: --from 42")
    if position.time is not None:
        time = in_session_zone(spark, position.time)
        # With the offset of its zone, because a step may set another time zone.
        options = {"startingTimestamp": time.isoformat(" ", "microseconds")}
        return InputStart(options, f"from {time.isoformat(' ')}")
    newest = table.delta(spark).history(1).selectExpr("version", "unix_millis(timestamp) AS milliseconds").collect()[0]
    if position.is_checkpoint:
        version = _unread_version(reached or {})
        text = "from where the previous checkpoint stopped"
        if version > newest["version"]:  # a version that does not exist yet cannot be named, but its time can
            after_newest = datetime.fromtimestamp((newest["milliseconds"] + 1) / 1000, UTC)
            options = {"startingTimestamp": after_newest.isoformat(" ", "milliseconds")}
            return InputStart(options, text, repeats=False)
        return InputStart({"startingVersion": str(version)}, text, repeats=False)
    version = int(position.version or 0)
    if version > newest["version"]:
        raise ConfigurationError(
            f"table {table.name!r} has no version {version}",
            where=table.location,
            fix=f"pass a version up to its newest one, {newest['version']}",
        )
    count = version - _first_unread_version(reached) if reached else -1
    return InputStart(
        {"startingVersion": str(version)},
        f"from version {version}",
        repeats=count < 0,
        skipped=count_text(max(count, 0), "version"),
    )


def _unread_version(reached: ReachedOffset) -> int:
    """Return the first version that Delta's offset `reached` has not read. Raise ConfigurationError in mid-version."""
    # Between two versions, the offset has the next version and a negative index (Delta 4.4.0).
    version = int(reached["reservoirVersion"])
    if reached["isStartingVersion"] or reached["index"] >= 0:
        raise ConfigurationError(
            f"the previous checkpoint has read version {version} of the table only in part",
            fix=f"pass --from {version} to read this version again, or --from {version + 1} to skip the rest of it",
        )
    return version


def _first_unread_version(reached: ReachedOffset) -> int:
    """Return the first version of which Delta's offset `reached` has read nothing."""
    is_between = not reached["isStartingVersion"] and reached["index"] < 0
    return int(reached["reservoirVersion"]) + (0 if is_between else 1)
