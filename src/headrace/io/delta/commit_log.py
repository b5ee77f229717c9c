"""Search a table's log on this machine's disk: for the commit of a batch, and for RESTOREs that removed batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

RESTORE = "RESTORE"  # the operation, as the log names it
MAX_SEARCHED_COMMITS = 20  # how many of the newest commits `read_changes` and the first search of a CommitLog read


@dataclass(frozen=True)
class Commit:
    """One commit to a table: its version, and the rows, files and bytes that it wrote."""

    version: int
    rows: int
    files: int
    bytes: int


class CommitLog:
    """Finds the commits of one query to a table by their transaction ids.

    Each search begins after the commit that the previous search found, since batches are committed in order.
    """

    def __init__(self, table: Path) -> None:
        self._directory = table / "_delta_log"
        self._last: int | None = None  # the version after which the next search begins; None before the first search

    def find(self, application: str, batch: int) -> Commit | None:
        """Return the commit of this batch of the query with the id `application`; None if no commit is found.

        The batch may have written no rows, or its commit may be older than the commits that the first search reads.
        """
        versions: Iterable[int]
        if self._last is None:
            versions = newest_versions = self._newest_versions()
            self._last = newest_versions[0] if newest_versions else None
        else:
            versions = count(self._last + 1)
        for version in versions:
            try:
                lines = (self._directory / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
            except OSError:
                return None
            transaction = next(_actions("txn", lines), {})
            is_by_query = transaction.get("appId") == application
            if is_by_query and transaction.get("version") == batch:
                self._last = version
                return _parse_commit(version, lines)
            if not is_by_query and version == (self._last or 0) + 1:
                self._last = version  # another writer's commit: no later search has to read it again
        return None

    def _newest_versions(self) -> list[int]:
        """Return the newest versions, latest first."""
        try:
            versions = [int(file.stem) for file in self._directory.glob("[0-9]*.json") if file.stem.isdigit()]
        except OSError:
            return []
        return sorted(versions, reverse=True)[:MAX_SEARCHED_COMMITS]


@dataclass(frozen=True)
class TableChange:
    """A commit that matters in the search for lost rows: a batch of the step, or a RESTORE."""

    version: int
    is_batch: bool  # false for a RESTORE
    restored: int | None = None  # the version that a RESTORE restored; None if the RESTORE names a time instead


def restore_of_older_version(changes: Iterable[TableChange]) -> int | None:
    """Return the version of the newest RESTORE if RESTOREs removed the last batch from a table; otherwise None.

    `changes` are sorted newest first. If they have no batch, any RESTORE counts as having removed the last one.
    A RESTORE does not remove the transactions of queries, so only the RESTORE's own commit shows that rows are missing
    (Delta 4.4.0).
    """
    restores: list[TableChange] = []
    for change in changes:
        if change.is_batch:
            return _restore_that_lost_batch(restores, change.version)
        restores.append(change)
    return restores[0].version if restores else None


def _restore_that_lost_batch(restores: list[TableChange], batch_version: int) -> int | None:
    """Return the version of the newest RESTORE if the table now shows a version before `batch_version`; otherwise None.

    `restores` are the RESTOREs after the batch, newest first. They lead to the version that the table shows, because a
    RESTORE may restore the result of an earlier RESTORE. A RESTORE that names a time counts as one that lost the batch.
    """
    if not restores:
        return None
    shown: int | None = restores[0].version
    for restore in restores:
        if shown is not None and restore.version <= shown:
            shown = restore.restored
    shows_batch = shown is not None and shown >= batch_version
    return None if shows_batch else restores[0].version


def read_changes(table: Path, application: str) -> Iterator[TableChange]:
    """Yield the query's batches and the RESTOREs among a table's newest commits, newest first.

    The table is on this machine's disk; `application` is the query's id.
    """
    files = (file for file in (table / "_delta_log").glob("[0-9]*.json") if file.stem.isdigit())
    for file in sorted(files, reverse=True)[:MAX_SEARCHED_COMMITS]:
        lines = file.read_text(encoding="utf-8").splitlines()
        info = next(_actions("commitInfo", lines), {})
        if any(transaction.get("appId") == application for transaction in _actions("txn", lines)):
            yield TableChange(int(file.stem), is_batch=True)
        elif info.get("operation") == RESTORE:
            yield restore_change(int(file.stem), info.get("operationParameters", {}))


def restore_change(version: int, parameters: Mapping[str, Any]) -> TableChange:
    """Return the commit of a RESTORE. `parameters` are the `operationParameters` of the commit."""
    restored = parameters.get("version")
    return TableChange(version, is_batch=False, restored=None if restored in (None, "null") else int(restored))


def _parse_commit(version: int, lines: list[str]) -> Commit:
    """Return the commit that these lines of the log describe."""
    added = list(_actions("add", lines))
    metrics = next(_actions("commitInfo", lines), {}).get("operationMetrics", {})
    row_counts = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    if any(key in metrics for key in row_counts):  # a merge also writes unchanged rows of the files that it rewrites
        rows = sum(int(metrics.get(key, 0)) for key in row_counts)
    else:
        rows = sum(_rows(file) for file in added)
    return Commit(version, rows, len(added), sum(file["size"] for file in added))


def _actions(kind: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    """Return the actions of one kind, such as "txn" or "add", in the lines of a commit."""
    return (json.loads(line)[kind] for line in lines if line.startswith(f'{{"{kind}"'))


def _rows(file: dict[str, Any]) -> int:
    """Return the number of rows in an added file; 0 if the log does not have this number."""
    return int(json.loads(file.get("stats") or "{}").get("numRecords", 0))
