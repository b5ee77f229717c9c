"""Sees from outside when each file of the feed is in silver, and in gold's state."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOOK = 0.1


@dataclass
class Watch:
    """Follows silver's log and gold's checkpoint; times are those of the files that make a commit."""

    silver: Path  # the table
    gold: Path  # the checkpoint
    file_of: Callable[[str], int]
    in_silver: dict[int, float] = field(default_factory=dict)
    in_gold: dict[int, float] = field(default_factory=dict)
    _versions: list[tuple[set[int], int]] = field(default_factory=list)  # a version's feed files, and its data files
    _read: int = 0  # versions that gold has read
    _batch: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _go(self) -> None:
        while not self._over.wait(LOOK):
            with suppress(FileNotFoundError):
                while True:
                    self._next_version()
            with suppress(FileNotFoundError):
                while self._next_batch():
                    pass

    def _next_version(self) -> None:
        log = self.silver / "_delta_log" / f"{len(self._versions):020d}.json"
        at = log.stat().st_mtime
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        files: set[int] = set()
        for told in (json.loads(add["stats"]) for add in added if add["dataChange"]):  # else it only merges files
            if told["numRecords"]:
                first, last = (self.file_of(told[key]["order_id"]) for key in ("minValues", "maxValues"))
                files |= set(range(max(0, first), last + 1))
        self._versions.append((files, len(added)))
        for file in files:
            self.in_silver[file] = at

    def _next_batch(self) -> bool:
        at = (self.gold / "commits" / str(self._batch)).stat().st_mtime
        offset = json.loads((self.gold / "offsets" / str(self._batch)).read_text().splitlines()[2])
        read = _versions_read(offset, self._versions)
        if read > len(self._versions):
            return False  # silver's log has not been looked at since
        for files, _ in self._versions[self._read : read]:
            for file in files:
                self.in_gold[file] = at
        self._read, self._batch = max(self._read, read), self._batch + 1
        return True


def _versions_read(offset: dict[str, Any], versions: list[tuple[set[int], int]]) -> int:
    """How many versions a batch with this end has read (Delta 4.4.0: an index below 0 is before that version)."""
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    whole = index >= 0 and version < len(versions) and index + 1 >= versions[version][1]
    return version + whole
