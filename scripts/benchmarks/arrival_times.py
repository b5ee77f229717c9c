"""Record when each file of the feed arrives in silver and in gold's state, by reading Delta logs and checkpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLL_INTERVAL_S = 0.1


@dataclass
class ArrivalRecorder:
    """Polls silver's log and gold's checkpoint. A time is the modification time of the commit's file."""

    silver: Path  # the table
    gold: Path  # the checkpoint
    file_of: Callable[[str], int]
    in_silver: dict[int, float] = field(default_factory=dict)
    in_gold: dict[int, float] = field(default_factory=dict)
    _versions: list[tuple[set[int], int]] = field(default_factory=list)  # feed files and number of data files of each
    _read: int = 0  # number of versions that gold has read
    _batch: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> ArrivalRecorder:
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _poll(self) -> None:
        while not self._stopped.wait(POLL_INTERVAL_S):
            with suppress(FileNotFoundError):
                while True:
                    self._read_version()
            with suppress(FileNotFoundError):
                while self._read_batch():
                    pass

    def _read_version(self) -> None:
        log = self.silver / "_delta_log" / f"{len(self._versions):020d}.json"
        committed_at = log.stat().st_mtime
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        files: set[int] = set()
        for stats in (json.loads(add["stats"]) for add in added if add["dataChange"]):  # not of compactions
            if stats["numRecords"]:
                first, last = (self.file_of(stats[key]["order_id"]) for key in ("minValues", "maxValues"))
                files |= set(range(max(0, first), last + 1))
        self._versions.append((files, len(added)))
        for file in files:
            self.in_silver[file] = committed_at

    def _read_batch(self) -> bool:
        committed_at = (self.gold / "commits" / str(self._batch)).stat().st_mtime
        offset = json.loads((self.gold / "offsets" / str(self._batch)).read_text().splitlines()[2])
        read = _count_versions(offset, self._versions)
        if read > len(self._versions):
            return False  # read silver's log first
        for files, _ in self._versions[self._read : read]:
            for file in files:
                self.in_gold[file] = committed_at
        self._read, self._batch = max(self._read, read), self._batch + 1
        return True


def _count_versions(offset: dict[str, Any], versions: list[tuple[set[int], int]]) -> int:
    """Return the number of versions before a batch's end offset (Delta 4.4.0: index < 0 is the start of a version)."""
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    is_complete = index >= 0 and version < len(versions) and index + 1 >= versions[version][1]
    return version + is_complete
