"""Merges a batch into a table by key: the newest row of each key stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.rules import quoted
from headrace.tables import CHANGES, Stamp, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANK = "_headrace_rank"


def upsert(
    rows: DataFrame,
    table: Table,
    *,
    keys: Sequence[str],
    sequence: str,
    stamp: Stamp,
    partition_by: Sequence[str] = (),
    as_new_wins: bool = False,
) -> None:
    """Inserts new keys and updates known ones: an older row never wins, and one that is just as new only if so said."""
    spark = rows.sparkSession
    fresh = newest(rows, keys, sequence)
    if not table.exists(spark):  # the first rows need no merge; changes are kept for those who will read them
        stamp.append(fresh, table, partition_by=partition_by, options=CHANGES)
        return
    same_key = " AND ".join(f"kept.{key} <=> new.{key}" for key in map(quoted, keys))
    merge = table.delta(spark).alias("kept").merge(fresh.alias("new"), same_key)
    by = quoted(sequence)
    newer = f"kept.{by} IS NULL OR new.{by} {'>=' if as_new_wins else '>'} kept.{by}"
    with stamp.on(spark):
        merge.whenMatchedUpdateAll(newer).whenNotMatchedInsertAll().execute()


def newest(rows: DataFrame, keys: Sequence[str], sequence: str) -> DataFrame:
    """The row of each key with the highest sequence; of equal ones, the same one at each repetition."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # A map has no hash in Spark (4.2.0), but its text has.
    hashed = [
        F.to_json(F.struct(name)) if "map<" in field.dataType.simpleString() else F.col(name)
        for field, name in zip(rows.schema.fields, map(quoted, rows.columns), strict=True)
    ]
    order = [F.col(quoted(sequence)).desc_nulls_last(), F.xxhash64(*hashed)]
    rank = F.row_number().over(Window.partitionBy(*map(quoted, keys)).orderBy(*order))
    return rows.withColumn(RANK, rank).where(F.col(RANK) == 1).drop(RANK)
