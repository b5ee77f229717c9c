"""Read facts about a table: some of its rows, its size, its version and its open windows."""

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
    """Some rows of a table, and the size and version of the whole table."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # those that are shown
    count: int  # the number of all rows
    files: int  # the number of files
    size: int  # in bytes
    version: int
    open_windows: int  # counted separately for each combination of the grouping columns

    def as_dict(self) -> dict[str, Any]:
        """Return the fields with the keys of the JSON output."""
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
    """Return the table to show: `table`, or with `quarantine` the quarantine table of the step that writes `table`.

    If `table` is itself a quarantine table, return its name in both cases. Raise ConfigurationError if no step of the
    bundle writes `table`.
    """
    writers = {name: step for _, step in bundle.located_steps() for name in step.tables_written}
    if table in writers and not quarantine:
        return table
    base = table if table in writers else table.removesuffix(QUARANTINE_SUFFIX)
    if base not in writers:
        raise ConfigurationError(f"no step writes table {table!r}", fix=fix_for_unknown_name(table, writers))
    # A step that writes several tables has one quarantine table, which is named after the first of them.
    return writers[base].tables_written[0] + QUARANTINE_SUFFIX


def read_table_info(spark: SparkSession, bundle: Bundle, name: str, *, limit: int) -> TableInfo:
    """Return at most `limit` rows of a table, and the size and version of the table.

    The rows are the newest ones if the table has windows or is a quarantine table, otherwise any rows. A quarantine
    table that does not exist yet has no rows. Raise DataError for any other table that does not exist.
    """
    table = table_of(bundle.environment, name)
    if not table.exists(spark):
        base = name.removesuffix(QUARANTINE_SUFFIX)
        is_quarantine = base != name
        if is_quarantine and table_of(bundle.environment, base).exists(spark):
            # A quarantine table that no step reads is created when its first row is quarantined.
            return TableInfo(name, columns=(), rows=(), count=0, files=0, size=0, version=0, open_windows=0)
        fix = f"first run the step that writes {base!r}"
        raise DataError(f"table {name!r} does not exist yet", where=table.location, fix=fix)
    frame = table.read(spark)
    sort_columns = [column for column in ("window_start", "quarantined_at") if column in frame.columns]
    if sort_columns:
        # Rows with equal times are in the order of their text columns, so that the output is always the same.
        texts = [field.name for field in frame.schema.fields if field.dataType.typeName() == "string"]
        newest_first = (frame[column].desc() for column in sort_columns)
        shown = frame.orderBy(*newest_first, *(frame[f"`{column}`"] for column in texts)).limit(limit)
    else:
        shown = frame.limit(limit)
    detail = table.delta(spark).detail().select("numFiles", "sizeInBytes").collect()[0]
    version = table.delta(spark).history(1).select("version").collect()[0]["version"]
    return TableInfo(
        name,
        columns=tuple(frame.columns),
        rows=_collect_in_utc(shown),
        count=frame.count(),
        files=detail["numFiles"],
        size=detail["sizeInBytes"],
        version=version,
        open_windows=_count_open_windows(bundle, name) if "window_start" in frame.columns else 0,
    )


def _collect_in_utc(frame: DataFrame) -> tuple[tuple[Any, ...], ...]:
    """Return the rows of the frame, with timestamps as naive datetimes in UTC. (pyspark returns them in local time.)"""
    timestamp_indexes = {
        index for index, field in enumerate(frame.schema.fields) if field.dataType.typeName() == "timestamp"
    }
    return tuple(
        tuple(
            value.astimezone(UTC).replace(tzinfo=None) if index in timestamp_indexes and value is not None else value
            for index, value in enumerate(row)
        )
        for row in frame.collect()
    )


def _count_open_windows(bundle: Bundle, name: str) -> int:
    """Return the number of open windows of a gold table.

    Windows are counted separately for each combination of the grouping columns.
    The step that writes the table keeps the open windows in its state; the event of its last batch has their number.
    Return 0 if there is no batch yet, or if no gold step with `output: append` writes the table.
    """
    for pipeline in bundle.pipelines.values():
        for step in pipeline.steps.values():
            if name in step.tables_written and step.layer == "gold" and step.output == "append":
                batches = [
                    event
                    for event in read_events(bundle.run_files_directory, pipeline.name)
                    if event.step == step.name and event.what == "batch"
                ]
                return batches[-1].state_rows if batches else 0
    return 0
