"""Looks at a table: some rows, how many there are, how large, and how much is still to come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import closest_match
from headrace.config.models import Bundle
from headrace.errors import ConfigurationError, DataError
from headrace.io.delta.delta_table import table_of
from headrace.runtime.events import read_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TableInfo:
    """What there is to see of a table."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    files: int
    size: int
    version: int
    open_windows: int

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
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
    """The table's name, or its quarantine's; it must be one that a step of the bundle writes."""
    writers = {name: step for _, step in bundle.located_steps() for name in step.tables_written}
    base = table if table in writers else table.removesuffix(QUARANTINE_SUFFIX)
    if base not in writers:
        raise ConfigurationError(f"no step writes a table {table!r}", fix=closest_match(table, writers))
    # A step with several tables has one quarantine, beside the first.
    return writers[base].tables_written[0] + QUARANTINE_SUFFIX if quarantine or table != base else table


def table_info(spark: SparkSession, bundle: Bundle, name: str, *, limit: int) -> TableInfo:
    """Some rows of the table and its measures."""
    table = table_of(bundle.environment, name)
    if not table.exists(spark):
        if name.endswith(QUARANTINE_SUFFIX) and table_of(
            bundle.environment, name.removesuffix(QUARANTINE_SUFFIX)
        ).exists(spark):
            return TableInfo(name, (), (), 0, 0, 0, 0, 0)  # it is made with the first row that is refused
        fix = f"run the step that writes {name.removesuffix(QUARANTINE_SUFFIX)!r} first"
        raise DataError(f"table {name!r} is not there yet", where=table.location, fix=fix)
    frame = table.read(spark)
    order = [column for column in ("window_start", "quarantined_at") if column in frame.columns]
    shown = frame.orderBy(*(frame[column].desc() for column in order)).limit(limit) if order else frame.limit(limit)
    detail = table.delta(spark).detail().select("numFiles", "sizeInBytes").collect()[0]
    version = table.delta(spark).history(1).select("version").collect()[0]["version"]
    return TableInfo(
        name,
        tuple(frame.columns),
        _in_utc(shown),
        frame.count(),
        detail["numFiles"],
        detail["sizeInBytes"],
        version,
        _open_windows(bundle, name) if "window_start" in frame.columns else 0,
    )


def _in_utc(frame: DataFrame) -> tuple[tuple[Any, ...], ...]:
    """The frame's rows, with times as the tables mean them: pyspark gives them in this machine's zone."""
    times = {at for at, field in enumerate(frame.schema.fields) if field.dataType.typeName() == "timestamp"}
    return tuple(
        tuple(
            value.astimezone(UTC).replace(tzinfo=None) if at in times and value is not None else value
            for at, value in enumerate(row)
        )
        for row in frame.collect()
    )


def _open_windows(bundle: Bundle, name: str) -> int:
    """Rows of the table, one for each group, that the step still holds back as their windows are open."""
    for pipeline in bundle.pipelines.values():
        for step in pipeline.steps.values():
            if name in step.tables_written and step.layer == "gold" and step.output == "append":
                batches = [
                    e for e in read_events(bundle.directory, pipeline.name) if e.step == step.name and e.what == "batch"
                ]
                return batches[-1].state_rows if batches else 0
    return 0
