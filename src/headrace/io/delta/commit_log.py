"""Read from a table's log on this machine's disk what a batch has written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

SEARCHED = 20  # newest commits, if it is not known where the previous batch was


@dataclass(frozen=True)
class Commit:
    """One commit to a table: its version, and the rows, files and bytes that it wrote."""

    version: int
    rows: int
    files: int
    bytes: int


class CommitLog:
    """Finds commits of a table by their transaction ids; remembers where it found the last one."""

    def __init__(self, table: Path) -> None:
        self._directory = table / "_delta_log"
        self._last: int | None = None

    def find(self, application: str, batch: int) -> Commit | None:
        """Return the commit of this batch, or None if there is none, as for batches that write no rows."""
        versions = self._newest() if self._last is None else count(self._last + 1)
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

    def _newest(self) -> list[int]:
        """Return the newest versions, latest first, and let the next search begin after them."""
        try:
            versions = [int(file.stem) for file in self._directory.glob("[0-9]*.json") if file.stem.isdigit()]
        except OSError:
            return []
        self._last = max(versions, default=None)
        return sorted(versions, reverse=True)[:SEARCHED]


def _commit(version: int, lines: list[str]) -> Commit:
    added = list(_actions("add", lines))
    metrics = next(_actions("commitInfo", lines), {}).get("operationMetrics", {})
    changes = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    if any(key in metrics for key in changes):  # a merge: its files also hold rows that did not change
        rows = sum(int(metrics.get(key, 0)) for key in changes)
    else:
        rows = sum(_rows(file) for file in added)
    return Commit(version, rows, len(added), sum(file["size"] for file in added))


def _actions(kind: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    return (json.loads(line)[kind] for line in lines if line.startswith(f'{{"{kind}"'))


def _rows(file: dict[str, Any]) -> int:
    return int(json.loads(file.get("stats") or "{}").get("numRecords", 0))
