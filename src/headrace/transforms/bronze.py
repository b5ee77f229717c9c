"""Transforms for bronze steps: cleaning rows as they arrive."""

from __future__ import annotations

from pyspark.sql import DataFrame


def deduplicate(rows: DataFrame, /, *, keys: list[str], forever: bool = False) -> DataFrame:
    """Drop rows whose key was seen before within the watermark's delay, or ever with `forever` (unbounded state)."""
    if isinstance(keys, str) or not keys:
        raise ValueError(f"deduplicate: keys must be a list of one or more column names, not {keys!r}")
    if unknown := [key for key in keys if key not in rows.columns]:
        raise ValueError(f"deduplicate: keys names unknown columns {unknown}; the columns are {rows.columns}")
    return rows.dropDuplicates(keys) if forever else rows.dropDuplicatesWithinWatermark(keys)
