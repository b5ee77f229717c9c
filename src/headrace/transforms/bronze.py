"""What a bronze step does to rows as they arrive."""

from __future__ import annotations

from pyspark.sql import DataFrame


def deduplicate(rows: DataFrame, /, *, keys: list[str], forever: bool = False) -> DataFrame:
    """Keep the first row of each key: within the watermark's delay, or for ever, with ever more state."""
    if isinstance(keys, str) or not keys:
        raise ValueError(f"deduplicate: keys must be a list of one or more column names, not {keys!r}")
    if unknown := [key for key in keys if key not in rows.columns]:
        raise ValueError(f"deduplicate: keys names unknown columns {unknown}; the columns are {rows.columns}")
    return rows.dropDuplicates(keys) if forever else rows.dropDuplicatesWithinWatermark(keys)
