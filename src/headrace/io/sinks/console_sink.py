"""Print batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def print_batch(rows: DataFrame, batch: int) -> None:
    """Prints a batch: through Python, because what the JVM prints goes to the log."""
    print(f"batch {batch}")
    rows.show(truncate=False)
