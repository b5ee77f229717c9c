"""Find the commit of a batch in a table's log on this machine's disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

RESTORE = "RESTORE"  # the operation, as the log names it
MAX_SEARCHED_COMMITS = 20  # how many of the newest commits the first search reads


@dataclass(frozen=True)
class Commit:
    """One commit to a table: its version, and the rows, files and bytes that it wrote."""

    version: int
    rows: int
    files: int
    bytes: int


class CommitLog:
    """Finds the commits of one query to a table by their transaction ids.

    Each search begins after the commit that the previous one has found, since batches are committed in order.
    """

    def __init__(self, table: Path) -> None:
        self._directory = table / "_delta_log"
        self._last: int | None = None  # the version after which the next search begins

    def find(self, application: str, batch: int) -> Commit | None:
        """Return the commit of this batch; None if there is none, for example because the batch wrote no rows."""
        versions = self._newest_versions() if self._last is None else count(self._last + 1)
        for version in versions:
            try:
                lines = (self._directory / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
            except OSError:
                return None
            transaction = next(_actions("txn", lines), {})
            if (transaction.get("appId"), transaction.get("version")) == (application, batch):
                self._last = version
                return _commit(version, lines)
            if transaction.get("appId") != application and version == (self._last or 0) + 1:
                self._last = version  # of another writer: no later search has to read it again
        return None

    def _newest_versions(self) -> list[int]:
        """Return the newest versions, latest first. Let the next search begin after them."""
        try:
            versions = [int(file.stem) for file in self._directory.glob("[0-9]*.json") if file.stem.isdigit()]
        except OSError:
            return []
        self._last = max(versions, default=None)
        return sorted(versions, reverse=True)[:MAX_SEARCHED_COMMITS]


@dataclass(frozen=True)
class TableChange:
    """A commit that a search for lost rows has to know: a batch of the step, or a RESTORE."""

    version: int
    is_batch: bool
    restored: int | None = None  # the version that a RESTORE restored; None if it was given by its time


def restore_of_older_version(changes: Iterable[TableChange]) -> int | None:
    """Return the version of the RESTORE that removed the last batch from a table; None if the table has it.

    `changes` are the newest first. RESTORE keeps the transactions of queries, so that only its own commit shows that
    rows are missing (Delta 4.4.0).
    """
    restores: list[TableChange] = []
    for change in changes:
        if change.is_batch:
            return _lost(restores, change.version)
        restores.append(change)
    return restores[0].version if restores else None


def _lost(restores: list[TableChange], batch: int) -> int | None:
    """Follow the restores, newest first, to the version that the table shows now; `batch` is that of the last batch."""
    shown: int | None = restores[0].version if restores else batch
    for restore in restores:
        if shown is not None and restore.version <= shown:
            shown = restore.restored
    return None if shown is not None and shown >= batch else restores[0].version


def read_changes(table: Path, application: str) -> Iterator[TableChange]:
    """Yield the batches of the application and the RESTOREs in the log of a table on this machine's disk."""
    files = (file for file in (table / "_delta_log").glob("[0-9]*.json") if file.stem.isdigit())
    for file in sorted(files, reverse=True)[:MAX_SEARCHED_COMMITS]:
        lines = file.read_text(encoding="utf-8").splitlines()
        info = next(_actions("commitInfo", lines), {})
        if any(transaction.get("appId") == application for transaction in _actions("txn", lines)):
            yield TableChange(int(file.stem), is_batch=True)
        elif info.get("operation") == RESTORE:
            yield restore_change(int(file.stem), info.get("operationParameters", {}))


def restore_change(version: int, parameters: Mapping[str, Any]) -> TableChange:
    """Return the commit of a RESTORE with these parameters."""
    restored = parameters.get("version")
    return TableChange(version, is_batch=False, restored=None if restored in (None, "null") else int(restored))


def _commit(version: int, lines: list[str]) -> Commit:
    added = list(_actions("add", lines))
    metrics = next(_actions("commitInfo", lines), {}).get("operationMetrics", {})
    changes = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    if any(key in metrics for key in changes):  # a merge also writes unchanged rows of the files that it rewrites
        rows = sum(int(metrics.get(key, 0)) for key in changes)
    else:
        rows = sum(_rows(file) for file in added)
    return Commit(version, rows, len(added), sum(file["size"] for file in added))


def _actions(kind: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    """Return the actions of one kind, such as "txn" or "add", in the lines of a commit."""
    return (json.loads(line)[kind] for line in lines if line.startswith(f'{{"{kind}"'))


def _rows(file: dict[str, Any]) -> int:
    """Return the number of rows in an added file."""
    return int(json.loads(file.get("stats") or "{}").get("numRecords", 0))
