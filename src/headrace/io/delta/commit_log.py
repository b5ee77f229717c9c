"""Find the commit of a batch in a table's log on this machine's disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

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


def newest_restore(table: Path, application: str) -> int | None:
    """Return the version of a RESTORE that is newer than the last commit of the application; None if there is none.

    RESTORE keeps the transactions of queries, so that only its own commit shows that rows are missing (Delta 4.4.0).
    """
    files = (file for file in (table / "_delta_log").glob("[0-9]*.json") if file.stem.isdigit())
    for file in sorted(files, reverse=True)[:MAX_SEARCHED_COMMITS]:
        lines = file.read_text(encoding="utf-8").splitlines()
        if any(transaction.get("appId") == application for transaction in _actions("txn", lines)):
            return None
        if any(commit.get("operation") == "RESTORE" for commit in _actions("commitInfo", lines)):
            return int(file.stem)
    return None


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
