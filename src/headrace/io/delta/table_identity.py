"""Read what a table records about its writers; set its writers, truncate it, restore a version of it.

A table names its writers in the property `headrace.writers`. Its log has, for each query id, the last batch that the
query wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.checkpoints.pairing import TableState, Writer
from headrace.config.models import local_path
from headrace.io.delta.commit_log import RESTORE, TableChange, read_changes, restore_change, restore_of_older_version
from headrace.io.delta.delta_table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS_PROPERTY = "headrace.writers"
SEARCHED_COMMITS = 20  # how many of the newest commits are searched for a RESTORE, if the log is not on this machine
BATCH_OPERATIONS = ("WRITE", "STREAMING UPDATE", "MERGE")  # the operations of commits that may be batches of a step


def table_identity(spark: SparkSession, table: Table) -> tuple[str, tuple[Writer, ...]] | None:
    """Return a table's id and the writers that it names; None if it does not exist.

    This takes milliseconds. The transactions of a table, which `table_state` reads, take half a second (Delta 4.4.0).
    """
    if not table.exists(spark):
        return None
    try:
        metadata = table.snapshot(spark).metadata()
        return str(metadata.id()), read_writers(_as_dict(metadata.configuration()))
    except (AttributeError, NotImplementedError, TypeError):  # as in `table_state`
        detail = table.delta(spark).detail().collect()[0]
        return str(detail["id"]), read_writers(dict(detail["properties"]))


def table_state(spark: SparkSession, table: Table, query_id: str = "") -> TableState | None:
    """Return what must be known of a table at the start of a step; None if the table does not exist.

    `query_id` is the id of the query that writes the table, to find a RESTORE after the query's last batch. Without it,
    no RESTORE is searched for.
    """
    if not table.exists(spark):
        return None
    try:
        snapshot = table.snapshot(spark)
        table_id, version = str(snapshot.metadata().id()), int(snapshot.version())
        properties = _as_dict(snapshot.metadata().configuration())
        transactions: dict[str, int] | None = _as_dict(snapshot.transactions())
        is_empty = not transactions and int(snapshot.numOfFiles()) == 0
    except (AttributeError, NotImplementedError, TypeError):  # on Databricks, where Delta's classes differ
        detail = table.delta(spark).detail().collect()[0].asDict()
        table_id, properties = str(detail["id"]), dict(detail["properties"])
        version = int(table.delta(spark).history(1).collect()[0]["version"])
        transactions, is_empty = None, int(detail["numFiles"]) == 0
    restore_commit_version = _find_restore(spark, table, query_id) if query_id else None
    return TableState(
        table.name,
        table.location,
        table_id,
        version,
        is_empty,
        read_writers(properties),
        transactions,
        restore_commit_version,
    )


def read_writers(properties: Mapping[str, str]) -> tuple[Writer, ...]:
    """Return the writers that a table's properties name; an empty tuple if they name none or cannot be parsed."""
    try:
        return tuple(Writer(**writer) for writer in json.loads(properties.get(WRITERS_PROPERTY, "[]")))
    except (ValueError, TypeError):
        return ()


def set_writers(spark: SparkSession, table: Table, writers: Iterable[Writer]) -> None:
    """Store the writers in the table's properties. A query that writes the table at the same time fails."""
    text = json.dumps([asdict(writer) for writer in writers]).replace("'", "\\'")
    spark.sql(f"ALTER TABLE {table.sql_name} SET TBLPROPERTIES ('{WRITERS_PROPERTY}' = '{text}')")


def truncate(spark: SparkSession, table: Table) -> None:
    """Delete all rows of a table as one commit, which `restore_version` can undo."""
    table.delta(spark).delete()


def restore_version(spark: SparkSession, table: Table, version: int) -> int:
    """Restore the rows that the table had in this version. Return the new version, which the RESTORE created."""
    table.delta(spark).restoreToVersion(version)
    return int(table.delta(spark).history(1).collect()[0]["version"])


def _find_restore(spark: SparkSession, table: Table, query_id: str) -> int | None:
    """If the query's last batch is missing because of one or more RESTOREs, return the version of the newest one.

    Otherwise return None. The history of a table whose log is not on this machine's disk has no transaction ids: for
    such a table, each write counts as a batch of the query.
    """
    path = local_path(table.location) if table.by_path else ""
    if path:
        return restore_of_older_version(read_changes(Path(path), query_id))
    history = table.delta(spark).history(SEARCHED_COMMITS).select("version", "operation", "operationParameters")
    return restore_of_older_version(
        restore_change(row["version"], row["operationParameters"])
        if row["operation"] == RESTORE
        else TableChange(row["version"], is_batch=True)
        for row in history.collect()
        if row["operation"] in (*BATCH_OPERATIONS, RESTORE)
    )


def _as_dict(scala_map: Any) -> dict[str, Any]:
    """Return a Scala map as a dict."""
    entries, iterator = {}, scala_map.iterator()
    while iterator.hasNext():
        entry = iterator.next()
        entries[str(entry._1())] = entry._2()
    return entries
