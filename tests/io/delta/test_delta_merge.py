"""Merging: of each key the newest row stays, whatever order rows and batches come in."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import Table
from headrace.io.delta.transaction_id import TransactionId

ROW = "region STRING, id INT, seq INT, name STRING, tags MAP<STRING, INT>"


@pytest.fixture
def merge(spark, tmp_path):
    """Merges batches into one table; what is in it afterwards, by key, read without Spark."""
    table = Table("people", str(tmp_path / "people"), by_path=True)
    table.create(spark, spark.createDataFrame([], ROW).schema)

    def one(number, *rows):
        frame = spark.createDataFrame([(*row, {"a": 1}) for row in rows], ROW)
        delta_merge.upsert(
            frame, table, keys=["region", "id"], sequence="seq", transaction=TransactionId("a query", number)
        )
        delta = DeltaTable(table.location)
        kept = {(r["region"], r["id"]): (r["seq"], r["name"]) for r in delta.to_pyarrow_table().to_pylist()}
        assert len(kept) == len(delta.to_pyarrow_table())
        return kept

    one.version = lambda: DeltaTable(table.location).version()
    return one


def test_an_older_row_never_wins(merge):
    in_batch = merge(
        0,
        ("eu", 1, 1, "old"),
        ("eu", 1, 3, "new"),
        ("eu", 1, 2, "between"),
        ("us", 1, 1, "another key"),
        ("eu", 2, 5, "known"),
        ("eu", 3, None, "without a sequence"),
        ("eu", 4, None, "without"),
        ("eu", 4, 1, "with"),
        (None, 1, 1, "a null in the key"),
    )
    assert in_batch == {
        ("eu", 1): (3, "new"),
        ("us", 1): (1, "another key"),
        ("eu", 2): (5, "known"),
        ("eu", 3): (None, "without a sequence"),
        ("eu", 4): (1, "with"),
        (None, 1): (1, "a null in the key"),
    }
    later = [
        ("eu", 1, 2, "older than the table's"),
        ("us", 1, 2, "newer"),
        ("eu", 2, 5, "just as new"),
        ("eu", 3, 1, "at last a sequence"),
        ("eu", 4, None, "none again"),
        (None, 1, 2, "the same null"),
        ("eu", 5, 1, "another key"),
    ]
    wanted = {
        ("eu", 1): (3, "new"),
        ("us", 1): (2, "newer"),
        ("eu", 2): (5, "known"),
        ("eu", 3): (1, "at last a sequence"),
        ("eu", 4): (1, "with"),
        (None, 1): (2, "the same null"),
        ("eu", 5): (1, "another key"),
    }
    assert merge(1, *later) == wanted
    version = merge.version()
    assert merge(1, *later, ("eu", 9, 9, "would be new")) == wanted  # the table has seen batch 1
    assert merge.version() == version


def test_columns_are_taken_by_their_whole_names(spark, tmp_path):
    table = Table("people", str(tmp_path / "people"), by_path=True)
    for batch, (by, name) in enumerate([(1, "old"), (2, "new")]):
        rows = spark.createDataFrame([("a", by, name, 7)], "`who.id` STRING, `the.by` INT, name STRING, _rank INT")
        stamp = TransactionId("a query", batch)
        delta_merge.upsert(rows, table, keys=["who.id"], sequence="the.by", transaction=stamp)
    (kept,) = DeltaTable(table.location).to_pyarrow_table().to_pylist()
    assert kept == {"who.id": "a", "the.by": 2, "name": "new", "_rank": 7}


def test_of_equally_new_rows_the_same_one_stays_in_any_order(spark):
    rows = [("eu", 1, 1, name, {"a": 1}) for name in ("one", "two", "three")]
    kept = {
        delta_merge.newest_rows(spark.createDataFrame(order, ROW), ["region", "id"], ["seq"]).collect()[0]["name"]
        for order in (rows, rows[::-1], [rows[1], rows[2], rows[0]])
    }
    assert len(kept) == 1


def test_the_session_is_as_before(spark, merge):
    with pytest.raises(Exception, match="nonsense"):  # noqa: SIM117
        with TransactionId("a query", 7).in_session(spark):
            assert spark.conf.get("spark.databricks.delta.write.txnVersion") == "7"
            spark.sql("SELECT nonsense")
    assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
