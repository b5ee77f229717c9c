"""Transforms for bronze steps: cleaning rows as they arrive."""

from __future__ import annotations

from pyspark.sql import DataFrame

__all__ = ["deduplicate"]


def deduplicate(rows: DataFrame, /, *, keys: list[str], forever: bool = False) -> DataFrame:
    """Drop each row that has the same values in the columns `keys` as an earlier row.

    By default, Spark keeps keys in its state for the watermark's delay, and may not drop a later duplicate. With
    `forever`, keys are kept without limit, so the state grows without limit too.
    """
    if isinstance(keys, str) or not keys:
        raise ValueError(f"deduplicate: keys must be a list of one or more column names, not {keys!r}")
    if unknown := [key for key in keys if key not in rows.columns]:
        raise ValueError(f"deduplicate: 'keys' names unknown columns {unknown}; the columns are {rows.columns}")
    return rows.dropDuplicates(keys) if forever else rows.dropDuplicatesWithinWatermark(keys)
