"""Inspect a table: its newest rows, its size, its version and its open windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import fix_for_unknown_name
from headrace.config.models import Bundle
from headrace.errors import ConfigurationError, DataError
from headrace.io.delta.delta_table import table_of
from headrace.runtime.events import read_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TableInfo:
    """The newest rows of a table, and its measures."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    files: int
    size: int  # in bytes
    version: int
    open_windows: int  # counted per group

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {
            "table": self.name,
            "count": self.count,
            "files": self.files,
            "bytes": self.size,
            "version": self.version,
            "open_windows": self.open_windows,
            "rows": rows,
        }


def resolve_table_name(bundle: Bundle, table: str, *, quarantine: bool) -> str:
    """Return the name of a table, or of its quarantine; raise ConfigurationError if no step of the bundle writes it."""
    writers = {name: step for _, step in bundle.located_steps() for name in step.tables_written}
    base = table if table in writers else table.removesuffix(QUARANTINE_SUFFIX)
    if base not in writers:
        raise ConfigurationError(f"no step writes table {table!r}", fix=fix_for_unknown_name(table, writers))
    # A step with several tables has one quarantine, named after the first.
    return writers[base].tables_written[0] + QUARANTINE_SUFFIX if quarantine or table != base else table


def table_info(spark: SparkSession, bundle: Bundle, name: str, *, limit: int) -> TableInfo:
    """Return the newest rows of a table, up to `limit`, and its measures."""
    table = table_of(bundle.environment, name)
    if not table.exists(spark):
        if name.endswith(QUARANTINE_SUFFIX) and table_of(
            bundle.environment, name.removesuffix(QUARANTINE_SUFFIX)
        ).exists(spark):
            return TableInfo(name, (), (), 0, 0, 0, 0, 0)  # created with its first row
        fix = f"first run the step that writes {name.removesuffix(QUARANTINE_SUFFIX)!r}"
        raise DataError(f"table {name!r} does not exist yet", where=table.location, fix=fix)
    frame = table.read(spark)
    sort_columns = [column for column in ("window_start", "quarantined_at") if column in frame.columns]
    if sort_columns:
        newest = frame.orderBy(*(frame[column].desc() for column in sort_columns)).limit(limit)
    else:
        newest = frame.limit(limit)
    detail = table.delta(spark).detail().select("numFiles", "sizeInBytes").collect()[0]
    version = table.delta(spark).history(1).select("version").collect()[0]["version"]
    return TableInfo(
        name,
        tuple(frame.columns),
        _collect_in_utc(newest),
        frame.count(),
        detail["numFiles"],
        detail["sizeInBytes"],
        version,
        _open_windows(bundle, name) if "window_start" in frame.columns else 0,
    )


def _collect_in_utc(frame: DataFrame) -> tuple[tuple[Any, ...], ...]:
    """Return the rows of the frame with timestamps in UTC; pyspark converts them to the local time zone."""
    timestamps = {index for index, field in enumerate(frame.schema.fields) if field.dataType.typeName() == "timestamp"}
    return tuple(
        tuple(
            value.astimezone(UTC).replace(tzinfo=None) if index in timestamps and value is not None else value
            for index, value in enumerate(row)
        )
        for row in frame.collect()
    )


def _open_windows(bundle: Bundle, name: str) -> int:
    """Return how many rows, one per group, are still in the state of the step because their windows are open."""
    for pipeline in bundle.pipelines.values():
        for step in pipeline.steps.values():
            if name in step.tables_written and step.layer == "gold" and step.output == "append":
                batches = [
                    event
                    for event in read_events(bundle.directory, pipeline.name)
                    if event.step == step.name and event.what == "batch"
                ]
                return batches[-1].state_rows if batches else 0
    return 0
