"""Transforms for gold steps: aggregating rows per time window."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["Duration", "aggregate_windows"]

FUNCTIONS: dict[str, Callable[[Column], Column]] = {
    "count": F.count,
    "sum": F.sum,
    "avg": F.avg,
    "mean": F.avg,
    "min": F.min,
    "max": F.max,
    "stddev": F.stddev,
    "approx_count_distinct": F.approx_count_distinct,
    "collect_set": F.collect_set,
    "first": F.first,
    "last": F.last,
}
# Settings of any transform can be annotated with this type: `headrace check` then validates their values as durations.
Duration = str
DURATION = re.compile(r"(\s*[1-9]\d*\s+(milli|micro)?(second|minute|hour|day|week)s?)+\s*")


def aggregate_windows(
    rows: DataFrame,
    /,
    *,
    time: str,
    aggregates: Mapping[str, Mapping[str, str]],
    window: Duration | None = None,
    slide: Duration | None = None,
    gap: Duration | None = None,
    by: Sequence[str] = (),
) -> DataFrame:
    """Compute aggregates such as `{revenue: {sum: amount}, orders: {count: "*"}}` per window and group.

    `time` is the column with the event time. `by` are the columns to group by; without `by`, each window has one group.
    `window` alone makes tumbling windows, `window` and `slide` make sliding windows, and `gap` alone makes session
    windows, which end after a pause of that length.

    The columns of the result are `window_start`, `window_end`, the columns of `by`, and the aggregates.
    """
    if isinstance(by, str):
        raise ValueError(f"aggregate_windows: by must be a list of column names, not {by!r}")
    _require_columns("'time'", [time], rows)
    _require_columns("'by'", by, rows)
    columns = [_aggregate(name, aggregate, rows).alias(name) for name, aggregate in aggregates.items()]
    output_columns = ["window_start", "window_end", *by, *aggregates]
    if not columns or len(set(output_columns)) < len(output_columns):
        raise ValueError(
            f"aggregate_windows: needs one or more aggregates, and columns with different names, not {output_columns}"
        )
    time_window = _time_window(time, window, slide, gap).alias("_window")
    if gap and rows.isStreaming and not by:
        raise ValueError(
            "aggregate_windows: session windows of a stream need 'by' with at least one column to group by"
        )
    return (
        rows.groupBy(time_window, *map(_column, by))
        .agg(*columns)
        .select(
            F.col("_window.start").alias("window_start"),
            F.col("_window.end").alias("window_end"),
            *map(_column, (*by, *aggregates)),
        )
    )


def _time_window(time: str, window: str | None, slide: str | None, gap: str | None) -> Column:
    """Return the window of a row. Raise ValueError for an invalid duration or combination of durations."""
    # Spark 4.2.0 treats an invalid session gap as null, and silently drops every row.
    for name, value in (("window", window), ("slide", slide), ("gap", gap)):
        if value is not None and not DURATION.fullmatch(str(value)):
            raise ValueError(f"aggregate_windows: {name} must be a duration like '5 minutes', not {value!r}")
    if gap and not window and not slide:
        return F.session_window(_column(time), gap)
    if window and not gap:
        return F.window(_column(time), window, slide)
    raise ValueError("aggregate_windows: set 'window' (tumbling), 'window' and 'slide' (sliding), or 'gap' (session)")


def _aggregate(name: str, aggregate: Mapping[str, str], rows: DataFrame) -> Column:
    if not isinstance(aggregate, Mapping) or len(aggregate) != 1:
        raise ValueError(f"aggregate_windows: aggregate {name!r} must be like {{sum: amount}}, not {aggregate!r}")
    ((function, column),) = aggregate.items()
    if function not in FUNCTIONS:
        raise ValueError(f"aggregate_windows: {name!r} has an unknown function {function!r}; known: {list(FUNCTIONS)}")
    if (function, column) == ("count", "*"):
        return F.count(F.lit(1))
    _require_columns(f"aggregate {name!r}", [column], rows)
    return FUNCTIONS[function](_column(column))


def _require_columns(setting: str, columns: Sequence[str], rows: DataFrame) -> None:
    if unknown := [column for column in columns if column not in rows.columns]:
        raise ValueError(
            f"aggregate_windows: {setting} names unknown columns {unknown}; the columns are {rows.columns}"
        )


def _column(name: str) -> Column:
    return F.col(f"`{name}`")
