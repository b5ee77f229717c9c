"""Merges keep the newest row of each key, in whatever order rows and batches come."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import Table
from headrace.io.delta.transaction_id import TransactionId

ROW = "region STRING, id INT, seq INT, name STRING, tags MAP<STRING, INT>"


@pytest.fixture
def merge(spark, tmp_path):
    """Merge a batch into a table, and return the table's rows by key, read without Spark."""
    table = Table("people", str(tmp_path / "people"), by_path=True)
    table.create(spark, spark.createDataFrame([], ROW).schema)

    def merge_batch(number, *rows):
        frame = spark.createDataFrame([(*row, {"a": 1}) for row in rows], ROW)
        transaction = TransactionId("a query", number)
        delta_merge.upsert(frame, table, keys=["region", "id"], sequence="seq", transaction=transaction)
        merged = DeltaTable(table.location).to_pyarrow_table()
        by_key = {(row["region"], row["id"]): (row["seq"], row["name"]) for row in merged.to_pylist()}
        assert len(by_key) == len(merged)
        return by_key

    merge_batch.version = lambda: DeltaTable(table.location).version()
    return merge_batch


def test_older_rows_never_overwrite_newer_ones(merge):
    first = merge(
        0,
        ("eu", 1, 1, "old"),
        ("eu", 1, 3, "new"),
        ("eu", 1, 2, "between"),
        ("us", 1, 1, "another key"),
        ("eu", 2, 5, "known"),
        ("eu", 3, None, "no sequence"),
        ("eu", 4, None, "null"),
        ("eu", 4, 1, "not null"),
        (None, 1, 1, "a null in the key"),
    )
    assert first == {
        ("eu", 1): (3, "new"),
        ("us", 1): (1, "another key"),
        ("eu", 2): (5, "known"),
        ("eu", 3): (None, "no sequence"),
        ("eu", 4): (1, "not null"),
        (None, 1): (1, "a null in the key"),
    }
    later = [
        ("eu", 1, 2, "older than the table's"),
        ("us", 1, 2, "newer"),
        ("eu", 2, 5, "a tie"),
        ("eu", 3, 1, "a sequence at last"),
        ("eu", 4, None, "null again"),
        (None, 1, 2, "the same null"),
        ("eu", 5, 1, "a new key"),
    ]
    expected = {
        ("eu", 1): (3, "new"),
        ("us", 1): (2, "newer"),
        ("eu", 2): (5, "known"),
        ("eu", 3): (1, "a sequence at last"),
        ("eu", 4): (1, "not null"),
        (None, 1): (2, "the same null"),
        ("eu", 5): (1, "a new key"),
    }
    assert merge(1, *later) == expected
    version = merge.version()
    assert merge(1, *later, ("eu", 9, 9, "would be new")) == expected  # the table has batch 1
    assert merge.version() == version


def test_column_names_with_dots_are_taken_whole(spark, tmp_path):
    table = Table("people", str(tmp_path / "people"), by_path=True)
    for batch, (by, name) in enumerate([(1, "old"), (2, "new")]):
        rows = spark.createDataFrame([("a", by, name, 7)], "`who.id` STRING, `the.by` INT, name STRING, _rank INT")
        transaction = TransactionId("a query", batch)
        delta_merge.upsert(rows, table, keys=["who.id"], sequence="the.by", transaction=transaction)
    (row,) = DeltaTable(table.location).to_pyarrow_table().to_pylist()
    assert row == {"who.id": "a", "the.by": 2, "name": "new", "_rank": 7}


def test_of_ties_in_a_batch_the_same_row_is_kept_in_any_order(spark):
    rows = [("eu", 1, 1, name, {"a": 1}) for name in ("one", "two", "three")]
    names = {
        delta_merge.newest_rows(spark.createDataFrame(order, ROW), ["region", "id"], ["seq"]).collect()[0]["name"]
        for order in (rows, rows[::-1], [rows[1], rows[2], rows[0]])
    }
    assert len(names) == 1
