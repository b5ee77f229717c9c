"""Transforms for bronze steps: cleaning rows as they arrive."""

from __future__ import annotations

from pyspark.sql import DataFrame


def deduplicate(rows: DataFrame, /, *, keys: list[str], forever: bool = False) -> DataFrame:
    """Drop each row whose values in the columns `keys` are those of an earlier row.

    Keys are kept in state for the watermark's delay. With `forever`, they are kept without limit, so the state grows
    without limit too.
    """
    if isinstance(keys, str) or not keys:
        raise ValueError(f"deduplicate: keys must be a list of one or more column names, not {keys!r}")
    if unknown := [key for key in keys if key not in rows.columns]:
        raise ValueError(f"deduplicate: 'keys' names unknown columns {unknown}; the columns are {rows.columns}")
    return rows.dropDuplicates(keys) if forever else rows.dropDuplicatesWithinWatermark(keys)
