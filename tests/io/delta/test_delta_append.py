"""Batches as single commits, as Delta's own streaming sink writes them, and nothing where that is impossible."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from headrace.io.delta import delta_append
from headrace.io.delta.delta_table import Table
from headrace.io.delta.transaction_id import TransactionId


@pytest.fixture
def table(spark, tmp_path):
    table = Table("t", str(tmp_path / "t"), by_path=True)
    table.create(spark, spark.createDataFrame([], "n INT, day STRING").schema, partition_by=["day"])
    return table


def rows(spark, *numbers):
    return spark.createDataFrame([(number, "monday") for number in numbers], "n INT, day STRING")


def actions(table, version):
    """Return the actions of a commit, by their kind."""
    lines = Path(f"{table.location}/_delta_log/{version:020}.json").read_text().splitlines()
    return {kind: action for line in lines for kind, action in json.loads(line).items()}


def test_new_batch_is_one_commit_with_its_transaction_id(spark, table):
    assert delta_append.append_batch(
        rows(spark, 1, 2), table.location, application="query", batch=7, partition_by=["day"]
    )
    commit = actions(table, 1)
    assert (commit["txn"]["appId"], commit["txn"]["version"]) == ("query", 7)
    assert (commit["commitInfo"]["operation"], commit["commitInfo"]["isBlindAppend"]) == ("STREAMING UPDATE", True)
    assert json.loads(commit["add"]["stats"])["numRecords"] > 0
    assert commit["add"]["partitionValues"] == {"day": "monday"}
    assert table.has_batch(spark, "query", 7)
    assert not table.has_batch(spark, "query", 8)
    assert sorted(DeltaTable(table.location).to_pyarrow_table()["n"].to_pylist()) == [1, 2]


def test_only_a_batch_that_is_new_is_appended_without_a_lookup(spark, table):
    for transaction in (TransactionId("query", 1), TransactionId("query", 1), TransactionId("query", 2, is_new=True)):
        transaction.write(rows(spark, transaction.batch), table, partition_by=["day"])
    assert sorted(row["n"] for row in table.read(spark).collect()) == [1, 2]
    operations = [actions(table, version)["commitInfo"]["operation"] for version in (1, 2)]
    assert operations == ["WRITE", "STREAMING UPDATE"]


def test_unknown_column_is_an_error_as_in_any_write(spark, table):
    wider = rows(spark, 1).selectExpr("n", "day", "n AS more")
    with pytest.raises(Exception, match="schema mismatch"):
        delta_append.append_batch(wider, table.location, application="query", batch=1, partition_by=["day"])
    assert table.read(spark).count() == 0


def test_missing_table_is_created_by_delta(spark, tmp_path):
    assert not delta_append.append_batch(rows(spark, 1), str(tmp_path / "none"), application="query", batch=1)
    table = Table("none", str(tmp_path / "none"), by_path=True)
    TransactionId("query", 1, is_new=True).write(rows(spark, 1), table, partition_by=["day"])
    assert table.has_batch(spark, "query", 1)


def test_nothing_is_written_where_delta_has_other_classes(spark, table, monkeypatch):
    connect = SimpleNamespace(sparkSession=SimpleNamespace())  # gives no access to the JVM
    assert not delta_append.append_batch(connect, table.location, application="query", batch=1)
    monkeypatch.setattr(delta_append, "DELTA", "com.databricks.sql.transaction.tahoe")
    assert not delta_append.append_batch(rows(spark, 1), table.location, application="query", batch=1)
    assert table.read(spark).count() == 0
