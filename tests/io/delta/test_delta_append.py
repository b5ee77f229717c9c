"""Batches as single commits: what Delta's own sink would have written, and left alone where that way is not open."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from headrace.io.delta import delta_append
from headrace.io.delta.delta_table import Table
from headrace.io.delta.transaction_id import TransactionId


@pytest.fixture
def table(spark, tmp_path):
    made = Table("t", str(tmp_path / "t"), by_path=True)
    made.create(spark, spark.createDataFrame([], "n INT, day STRING").schema, partition_by=["day"])
    return made


def rows(spark, *numbers):
    return spark.createDataFrame([(number, "monday") for number in numbers], "n INT, day STRING")


def log_of(table, version):
    file = f"{table.location}/_delta_log/{version:020}.json"
    with open(file) as opened:  # noqa: PTH123
        return {key: value for line in opened for key, value in json.loads(line).items()}


def test_a_new_batch_is_one_commit_with_its_stamp(spark, table):
    assert delta_append.append_batch(
        rows(spark, 1, 2), table.location, application="query", batch=7, partition_by=["day"]
    )
    log = log_of(table, 1)
    assert (log["txn"]["appId"], log["txn"]["version"]) == ("query", 7)
    assert (log["commitInfo"]["operation"], log["commitInfo"]["isBlindAppend"]) == ("STREAMING UPDATE", True)
    assert json.loads(log["add"]["stats"])["numRecords"] > 0
    assert log["add"]["partitionValues"] == {"day": "monday"}
    assert table.has_batch(spark, "query", 7)
    assert not table.has_batch(spark, "query", 8)
    assert sorted(DeltaTable(table.location).to_pyarrow_table()["n"].to_pylist()) == [1, 2]


def test_a_batch_that_may_be_there_is_asked_for_and_a_new_one_is_not(spark, table):
    for stamp in (TransactionId("query", 1), TransactionId("query", 1), TransactionId("query", 2, is_new=True)):
        stamp.write(rows(spark, stamp.batch), table, partition_by=["day"])
    assert sorted(row["n"] for row in table.read(spark).collect()) == [1, 2]
    assert [log_of(table, version)["commitInfo"]["operation"] for version in (1, 2)] == ["WRITE", "STREAMING UPDATE"]


def test_columns_that_the_table_lacks_are_refused_as_by_any_write(spark, table):
    wider = rows(spark, 1).selectExpr("n", "day", "n AS more")
    with pytest.raises(Exception, match="schema mismatch"):
        delta_append.append_batch(wider, table.location, application="query", batch=1, partition_by=["day"])
    assert table.read(spark).count() == 0


def test_a_table_still_to_be_made_is_left_to_delta(spark, tmp_path):
    assert not delta_append.append_batch(rows(spark, 1), str(tmp_path / "none"), application="query", batch=1)
    table = Table("none", str(tmp_path / "none"), by_path=True)
    TransactionId("query", 1, is_new=True).write(rows(spark, 1), table, partition_by=["day"])
    assert table.has_batch(spark, "query", 1)


def test_where_delta_has_other_classes_nothing_is_done(spark, table, monkeypatch):
    connected = SimpleNamespace(sparkSession=SimpleNamespace())  # no way to the JVM at all
    assert not delta_append.append_batch(connected, table.location, application="query", batch=1)
    monkeypatch.setattr(delta_append, "DELTA", "com.databricks.sql.transaction.tahoe")
    assert not delta_append.append_batch(rows(spark, 1), table.location, application="query", batch=1)
    assert table.read(spark).count() == 0
