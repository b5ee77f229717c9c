"""Commits of batches, as a table's log on the disk has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.io.delta import commit_log, delta_merge
from headrace.io.delta.commit_log import Commit, CommitLog, TableChange, restore_of_older_version
from headrace.io.delta.delta_table import Table
from headrace.io.delta.transaction_id import TransactionId

ROW = "id STRING, n INT"


@pytest.fixture
def table(spark, tmp_path):
    """An existing table without rows, at version 0."""
    table = Table("t", str(tmp_path / "t"), by_path=True)
    table.create(spark, spark.createDataFrame([], ROW).schema)
    return table


def append(spark, table, batch, *rows, query="query", is_new=True):
    frame = spark.createDataFrame(rows, ROW).coalesce(1)
    TransactionId(query, batch, is_new=is_new).write(frame, table)


def size_of(table, before=frozenset()):
    """Return the bytes of the table's data files that are not among those of before."""
    return sum(file.stat().st_size for file in set(Path(table.location).glob("*.parquet")) - before)


@pytest.mark.parametrize("is_new", [True, False])
def test_appended_batch_has_its_rows_files_and_bytes(spark, table, is_new):
    before = set(Path(table.location).glob("*.parquet"))
    append(spark, table, 0, ("a", 1), ("b", 2), is_new=is_new)
    assert CommitLog(Path(table.location)).find("query", 0) == Commit(1, 2, 1, size_of(table, before))


def test_merged_batch_counts_changed_rows_only(spark, table):
    """Delta rewrites whole files, so those have more rows than the batch has changed."""
    append(spark, table, 0, ("a", 1), ("b", 1), ("c", 1))
    before = set(Path(table.location).glob("*.parquet"))
    rows = spark.createDataFrame([("b", 2), ("d", 1), ("c", 0)], ROW)
    delta_merge.upsert(rows, table, keys=["id"], sequence="n", transaction=TransactionId("query", 1))
    commit = CommitLog(Path(table.location)).find("query", 1)
    assert (commit.version, commit.rows) == (2, 2)  # b is updated, d is inserted, c is older
    assert commit.files == len(set(Path(table.location).glob("*.parquet")) - before)
    assert commit.bytes == size_of(table, before)


def test_replaced_table_has_the_rows_of_the_batch(spark, table):
    append(spark, table, 0, ("a", 1), ("b", 1))
    frame = spark.createDataFrame([("c", 1)], ROW)
    TransactionId("query", 1).write(frame, table, mode="overwrite")
    assert CommitLog(Path(table.location)).find("query", 1).rows == 1


def test_batch_without_a_commit_is_not_found_and_later_ones_are(spark, table):
    log = CommitLog(Path(table.location))
    append(spark, table, 0, ("a", 1))
    assert log.find("query", 0).version == 1
    assert log.find("query", 1) is None  # it has written nothing
    append(spark, table, 2, ("b", 1))
    append(spark, table, 0, ("c", 1), query="another query")
    append(spark, table, 3, ("d", 1))
    assert log.find("query", 2).version == 2
    assert log.find("query", 3).version == 4


def test_commits_of_other_writers_are_read_once(spark, table, monkeypatch):
    log = CommitLog(Path(table.location))
    append(spark, table, 0, ("a", 1))
    assert log.find("query", 0).version == 1
    append(spark, table, 0, ("b", 1), query="another query")
    append(spark, table, 1, ("c", 1), query="another query")
    assert log.find("query", 1) is None
    reads = []
    monkeypatch.setattr(Path, "read_text", lambda path, **options: reads.append(path.name) or _missing())
    assert log.find("query", 2) is None
    assert reads == [f"{4:020}.json"]


def _missing():
    raise FileNotFoundError


def test_batch_without_rows_writes_no_rows(spark, table):
    append(spark, table, 0)
    commit = CommitLog(Path(table.location)).find("query", 0)
    assert commit is None or (commit.rows, commit.files, commit.bytes) == (0, 0, 0)


def test_missing_table_has_no_commits(spark, tmp_path):
    table = Table("t", str(tmp_path / "t"), by_path=True)
    log = CommitLog(tmp_path / "t")
    assert log.find("query", 0) is None
    append(spark, table, 1, ("a", 1))
    assert log.find("query", 1) == Commit(0, 1, 1, size_of(table))


def test_search_after_a_restart_finds_a_repeated_batch_among_the_newest_commits(spark, table, monkeypatch):
    """The table has the last batch of before a crash, and skips it when it is repeated."""
    monkeypatch.setattr(commit_log, "MAX_SEARCHED_COMMITS", 3)
    for batch in range(4):
        append(spark, table, batch, (str(batch), 1))
    log = CommitLog(Path(table.location))  # of the new run
    assert log.find("query", 3).version == 4
    append(spark, table, 4, ("4", 1))
    assert log.find("query", 4).version == 5
    assert CommitLog(Path(table.location)).find("query", 2).version == 3
    assert CommitLog(Path(table.location)).find("query", 0) is None  # too old to search for
    log = CommitLog(Path(table.location))
    assert log.find("query", 5) is None
    append(spark, table, 5, ("5", 1))
    assert log.find("query", 5).version == 6


BATCH = TableChange(5, is_batch=True)


def restore(version, restored):
    return TableChange(version, is_batch=False, restored=restored)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], None),
        ([BATCH], None),
        ([restore(6, 4), BATCH], 6),
        ([restore(6, 5), BATCH], None),
        ([restore(6, None), BATCH], 6),
        ([restore(7, 5), restore(6, 4), BATCH], None),
        ([restore(8, 6), restore(7, 5), restore(6, 4), BATCH], 8),
        ([restore(6, 4)], 6),
        ([TableChange(7, is_batch=True), restore(6, 4), BATCH], None),
    ],
)
def test_restore_that_removed_the_last_batch_is_found(changes, expected):
    assert restore_of_older_version(changes) == expected
