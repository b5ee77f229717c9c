"""Record when each file of the feed arrives in silver's table (from its Delta log) and gold's state (checkpoint)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

POLL_INTERVAL_S = 0.1


class SilverVersion(NamedTuple):
    """What one commit added to silver."""

    feed_files: set[int]  # indexes of the feed's files whose rows it contains
    data_files: int  # number of data files


@dataclass
class ArrivalRecorder:
    """Polls silver's log and gold's checkpoint. A time of arrival is the modification time of the commit's file."""

    silver_table: Path
    gold_checkpoint: Path
    file_of: Callable[[str], int]  # order_id -> index of the feed's file; negative for initial rows
    in_silver: dict[int, float] = field(default_factory=dict)  # index of the feed's file -> time of arrival
    in_gold: dict[int, float] = field(default_factory=dict)
    _versions: list[SilverVersion] = field(default_factory=list)
    _versions_in_gold: int = 0  # number of versions of silver that gold has read
    _next_batch: int = 0  # of gold
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
        """Read the next version of silver; raise FileNotFoundError if it does not exist yet."""
        log = self.silver_table / "_delta_log" / f"{len(self._versions):020d}.json"
        committed_at = log.stat().st_mtime
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        files: set[int] = set()
        for stats in (json.loads(add["stats"]) for add in added if add["dataChange"]):  # skips compactions
            if stats["numRecords"]:
                first, last = (self.file_of(stats[key]["order_id"]) for key in ("minValues", "maxValues"))
                files |= set(range(max(0, first), last + 1))
        self._versions.append(SilverVersion(files, len(added)))
        for file in files:
            self.in_silver[file] = committed_at

    def _read_batch(self) -> bool:
        """Read the next batch of gold and return True; raise FileNotFoundError if the batch is not committed yet.

        Return False if the batch contains versions of silver that `_read_version` has not read yet.
        """
        batch = str(self._next_batch)
        committed_at = (self.gold_checkpoint / "commits" / batch).stat().st_mtime
        offset = json.loads((self.gold_checkpoint / "offsets" / batch).read_text().splitlines()[2])
        versions = _count_versions(offset, self._versions)
        if versions > len(self._versions):
            return False
        for version in self._versions[self._versions_in_gold : versions]:
            for file in version.feed_files:
                self.in_gold[file] = committed_at
        self._versions_in_gold = max(self._versions_in_gold, versions)
        self._next_batch += 1
        return True


def _count_versions(offset: dict[str, Any], versions: list[SilverVersion]) -> int:
    """Return the number of complete versions before a batch's end offset.

    The offset is a version and the index of its last file that was read. Delta 4.4.0: an index below 0 is the start of
    the version.
    """
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    is_complete = index >= 0 and version < len(versions) and index + 1 >= versions[version].data_files
    return version + is_complete
