"""One file of orders a second, whole or not at all, each with the moment at which it came."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import say

from headrace_shop.arrivals import CLEAN
from headrace_shop.sample import make_sample

ROWS = 100  # of one file
SECOND = 1.0


@dataclass
class Feed:
    """Files made beforehand, published one by one; `published` tells when."""

    made: list[Path]
    inbox: Path
    published: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def publish(self) -> None:
        """The next file: the hidden copy gets its name when it is whole."""
        file = self.made[len(self.published)]
        hidden = self.inbox / f".{file.name}"
        shutil.copyfile(file, hidden)
        hidden.rename(self.inbox / file.name)
        self.published.append(time.time())

    def begin(self) -> None:
        """A file each second from now on."""
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """No more files."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _go(self) -> None:
        due = time.monotonic()
        while len(self.published) < len(self.made) and not self._over.wait(max(0.0, due - time.monotonic())):
            self.publish()
            due += SECOND


@dataclass(frozen=True)
class Stock:
    """What a window starts from, and the files that come during it."""

    directory: Path
    filled: int  # rows that are there before the first file of the feed

    @classmethod
    def make(cls, directory: Path, *, files: int, state: int) -> Stock:
        """Good rows only. With `state` so many rows come first, so close in event time that bronze forgets none."""
        filled = max(ROWS, state)
        if not directory.exists():
            say(f"making {filled:,} orders to begin with, and {files:,} files of {ROWS} …")
            directory.mkdir(parents=True)
            # Without a large state event time goes as fast as the clock, and windows close as they do in real life.
            pace = 60 * ROWS if not state else max(200_000, state // 2)
            settings: dict[str, Any] = {"mix": CLEAN, "pace": pace, "disorder": 0.5}
            make_sample(directory, orders=filled, files=-(-filled // 50_000), **settings)
            for file in sorted((directory / "orders").iterdir()):
                file.rename(file.with_name(f"fill-{file.name}"))
            make_sample(directory, orders=files * ROWS, files=files, append=True, **settings)
        return cls(directory, filled)

    def lay_out(self, data: Path) -> Feed:
        """Customers and the first rows are there; the others wait for their time."""
        shutil.copytree(self.directory / "customers", data / "customers")
        inbox = data / "orders"
        inbox.mkdir()
        for file in sorted((self.directory / "orders").glob("fill-*")):
            shutil.copy2(file, inbox)
        return Feed(sorted((self.directory / "orders").glob("orders-*")), inbox)

    def file_of(self, order_id: str) -> int:
        """Which file of the feed an order is in; negative for the first rows."""
        return (int(order_id[1:]) - self.filled - 1) // ROWS
