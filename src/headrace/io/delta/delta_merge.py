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
CHANGE_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, "_commit_timestamp")  # of a table's change data feed; never written


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
    """Insert new keys and update known ones. Older rows never win; ties with the table win only with `ties_win`.

    Of rows that are changes of a table, the commit version breaks ties within the batch.
    """
    spark = rows.sparkSession
    tie_break = [COMMIT_VERSION] if COMMIT_VERSION in rows.columns else []
    fresh = newest_rows(rows, keys, [sequence, *tie_break]).drop(*CHANGE_COLUMNS)
    if not table.exists(spark):  # the first rows need no merge; readers of changes need the change data feed
        transaction.write(fresh, table, partition_by=partition_by, options=CHANGE_DATA_FEED)
        return
    same_key = " AND ".join(f"old.{key} <=> new.{key}" for key in map(quote_name, keys))
    merge = table.delta(spark).alias("old").merge(fresh.alias("new"), same_key)
    by = quote_name(sequence)
    newer = f"old.{by} IS NULL OR new.{by} {'>=' if ties_win else '>'} old.{by}"
    with transaction.in_session(spark):
        merge.whenMatchedUpdateAll(newer).whenNotMatchedInsertAll().execute()


def changed_rows(rows: DataFrame) -> DataFrame:
    """Return the inserted and updated rows of a change data feed. Raise DataError if rows were deleted."""
    from pyspark.sql import functions as F

    if not rows.where(F.col(CHANGE_TYPE) == "delete").isEmpty():
        raise DataError(
            "rows were deleted in the table whose changes are read, and an upsert cannot delete them in the copy",
            fix="read the table with static: true, or drop rows of _change_type 'delete' in a transform to keep them",
        )
    return rows.where(F.col(CHANGE_TYPE) != "update_preimage")


def newest_rows(rows: DataFrame, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """Return the row of each key with the highest sequence; of ties, the same one whenever the batch is repeated."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # A map has no hash in Spark (4.2.0), but its text has.
    hashed = [
        F.to_json(F.struct(name)) if "map<" in field.dataType.simpleString() else F.col(name)
        for field, name in zip(rows.schema.fields, map(quote_name, rows.columns), strict=True)
    ]
    order = [*(F.col(name).desc_nulls_last() for name in map(quote_name, sequence)), F.xxhash64(*hashed)]
    rank = F.row_number().over(Window.partitionBy(*map(quote_name, keys)).orderBy(*order))
    return rows.withColumn(RANK, rank).where(F.col(RANK) == 1).drop(RANK)
