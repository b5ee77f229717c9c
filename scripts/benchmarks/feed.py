"""Publish one file of orders per second, atomically, and record the time of each."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from process_cost import print_progress

from headrace_shop.arrivals import CLEAN
from headrace_shop.sample import make_sample

ROWS = 100  # per file
INTERVAL_S = 1.0


@dataclass
class Feed:
    """Publishes prepared files one by one; `published` has the time of each."""

    files: list[Path]
    inbox: Path
    published: list[float] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def publish(self) -> None:
        """Publish the next file: rename a hidden copy when it is complete."""
        file = self.files[len(self.published)]
        hidden = self.inbox / f".{file.name}"
        shutil.copyfile(file, hidden)
        hidden.rename(self.inbox / file.name)
        self.published.append(time.time())

    def start(self) -> None:
        """Start to publish a file every second."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop publishing."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while len(self.published) < len(self.files) and not self._stopped.wait(max(0.0, due - time.monotonic())):
            self.publish()
            due += INTERVAL_S


@dataclass(frozen=True)
class FeedData:
    """The data of one window: rows that exist at its start, and the files to publish during it."""

    directory: Path
    initial_rows: int  # number of rows before the first file of the feed

    @classmethod
    def make(cls, directory: Path, *, files: int, state: int) -> FeedData:
        """Generate good rows, with `state` that many initial rows, all within the watermark's delay of bronze."""
        initial_rows = max(ROWS, state)
        if not directory.exists():
            print_progress(f"generating {initial_rows:,} initial orders, and {files:,} files of {ROWS} …")
            directory.mkdir(parents=True)
            # Without a large state, event time advances at the speed of the clock, and windows close as in production.
            pace = 60 * ROWS if not state else max(200_000, state // 2)
            settings: dict[str, Any] = {"mix": CLEAN, "pace": pace, "disorder": 0.5}
            make_sample(directory, orders=initial_rows, files=-(-initial_rows // 50_000), **settings)
            for file in sorted((directory / "orders").iterdir()):
                file.rename(file.with_name(f"initial-{file.name}"))
            make_sample(directory, orders=files * ROWS, files=files, append=True, **settings)
        return cls(directory, initial_rows)

    def prepare(self, data: Path) -> Feed:
        """Copy the customers and the initial rows to `data`, and return the feed of the other files."""
        shutil.copytree(self.directory / "customers", data / "customers")
        inbox = data / "orders"
        inbox.mkdir()
        for file in sorted((self.directory / "orders").glob("initial-*")):
            shutil.copy2(file, inbox)
        return Feed(sorted((self.directory / "orders").glob("orders-*")), inbox)

    def file_of(self, order_id: str) -> int:
        """Return the index of the feed's file that an order is in; negative for initial rows."""
        return (int(order_id[1:]) - self.initial_rows - 1) // ROWS
