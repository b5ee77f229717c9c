"""Merge a batch into a table by key, keeping the newest row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.errors import DataError
from headrace.io.delta.delta_table import CHANGE_DATA_FEED, Table
from headrace.io.delta.transaction_id import TransactionId
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANK = "_headrace_rank"
CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
CHANGE_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, "_commit_timestamp")  # added by a change data feed; never written


def upsert(
    rows: DataFrame,
    table: Table,
    *,
    keys: Sequence[str],
    sequence: str,
    transaction: TransactionId,
    partition_by: Sequence[str] = (),
    ties_win: bool = False,
) -> None:
    """Insert rows with new keys, and update rows with known keys if the batch has a newer row.

    A row is newer than the table's row if its value in the column `sequence` is greater, or if the table's row has no
    value. With `ties_win`, an equal value is enough. Within a batch, the newest row of each key is used; between rows
    of a change data feed with equal values, the latest commit wins. The first batch creates the table.
    """
    spark = rows.sparkSession
    tie_breakers = [COMMIT_VERSION] if COMMIT_VERSION in rows.columns else []
    new_rows = newest_rows(rows, keys, [sequence, *tie_breakers]).drop(*CHANGE_COLUMNS)
    if not table.exists(spark):
        # The first batch needs no merge. It enables the change data feed, which other steps may read.
        transaction.write(new_rows, table, partition_by=partition_by, options=CHANGE_DATA_FEED)
        return
    has_same_key = " AND ".join(f"old.{key} <=> new.{key}" for key in map(quote_name, keys))
    merge = table.delta(spark).alias("old").merge(new_rows.alias("new"), has_same_key)
    column = quote_name(sequence)
    is_newer = f"old.{column} IS NULL OR new.{column} {'>=' if ties_win else '>'} old.{column}"
    with transaction.in_session(spark):
        merge.whenMatchedUpdateAll(is_newer).whenNotMatchedInsertAll().execute()


def changed_rows(rows: DataFrame) -> DataFrame:
    """Return the inserted and updated rows of a change data feed. Raise DataError if rows were deleted."""
    from pyspark.sql import functions as F

    if not rows.where(F.col(CHANGE_TYPE) == "delete").isEmpty():
        raise DataError(
            "rows were deleted in the table whose changes are read, and an upsert cannot delete them in the copy",
            fix="read the table with static: true; or, to keep the deleted rows in the copy, drop rows of "
            "_change_type 'delete' in a transform",
        )
    return rows.where(F.col(CHANGE_TYPE) != "update_preimage")


def newest_rows(rows: DataFrame, keys: Sequence[str], sequence_columns: Sequence[str]) -> DataFrame:
    """Return the row of each key with the highest values in the `sequence_columns`, compared column by column.

    A hash of all columns breaks ties, so that a repeated batch gives the same rows.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # Spark cannot hash a map (4.2.0), so its JSON text is hashed.
    hashed = [
        F.to_json(F.struct(name)) if "map<" in field.dataType.simpleString() else F.col(name)
        for field, name in zip(rows.schema.fields, map(quote_name, rows.columns), strict=True)
    ]
    order = [*(F.col(name).desc_nulls_last() for name in map(quote_name, sequence_columns)), F.xxhash64(*hashed)]
    rank = F.row_number().over(Window.partitionBy(*map(quote_name, keys)).orderBy(*order))
    return rows.withColumn(RANK, rank).where(F.col(RANK) == 1).drop(RANK)
