"""Publish one file of orders per second, atomically, and record the time of each publication."""

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

ROWS_PER_FILE = 100
INTERVAL_S = 1.0


@dataclass
class Feed:
    """Publishes prepared files one by one into the inbox, the source directory of the pipeline."""

    files: list[Path]
    inbox: Path
    published: list[float] = field(default_factory=list)  # times of the files published so far, in order
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def publish(self) -> None:
        """Publish the next file atomically: copy it under a hidden name, then rename the copy."""
        file = self.files[len(self.published)]
        hidden = self.inbox / f".{file.name}"
        shutil.copyfile(file, hidden)
        hidden.rename(self.inbox / file.name)
        self.published.append(time.time())

    def start(self) -> None:
        """Start to publish a file every second, in a thread."""
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
    """The data of each window: initial rows, which exist at its start, and files that are published during it."""

    directory: Path
    initial_rows: int

    @classmethod
    def make(cls, directory: Path, *, files: int, state_keys: int) -> FeedData:
        """Generate the data if it does not exist: only good rows, and `files` files to publish.

        `state_keys` is the number of initial rows, if it is not 0. They are all within the delay of bronze's watermark,
        so that bronze keeps their keys in its state.
        """
        initial_rows = max(ROWS_PER_FILE, state_keys)
        if not directory.exists():
            print_progress(f"generating {initial_rows:,} initial orders, and {files:,} files of {ROWS_PER_FILE} …")
            directory.mkdir(parents=True)
            # Orders per minute of event time. Without a large state, event time advances at the speed of the clock, so
            # that windows close as in production.
            pace = max(200_000, state_keys // 2) if state_keys else 60 * ROWS_PER_FILE
            settings: dict[str, Any] = {"mix": CLEAN, "pace": pace, "disorder": 0.5}
            make_sample(directory, orders=initial_rows, files=-(-initial_rows // 50_000), **settings)
            for file in sorted((directory / "orders").iterdir()):
                file.rename(file.with_name(f"initial-{file.name}"))
            make_sample(directory, orders=files * ROWS_PER_FILE, files=files, append=True, **settings)
        return cls(directory, initial_rows)

    def prepare(self, data: Path) -> Feed:
        """Copy the customers and the initial rows to the directory `data`, and return a feed of the other files."""
        shutil.copytree(self.directory / "customers", data / "customers")
        inbox = data / "orders"
        inbox.mkdir()
        for file in sorted((self.directory / "orders").glob("initial-*")):
            shutil.copy2(file, inbox)
        return Feed(sorted((self.directory / "orders").glob("orders-*")), inbox)

    def file_of(self, order_id: str) -> int:
        """Return the index of the feed's file that contains an order; negative for initial rows."""
        return (int(order_id[1:]) - self.initial_rows - 1) // ROWS_PER_FILE
