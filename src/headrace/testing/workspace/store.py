"""The workspace's memory: one small JSON file for each thing, in a directory that a restart reads again."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from headrace.errors import SetupError
from headrace.testing.workspace.http_messages import Document

FIRST_ID = 1000
PART = ".part"  # how the names of files end that are being written


class Store:
    """Documents by kind and id; who changes more than one of them holds `lock` meanwhile."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.lock = threading.RLock()
        self._state = self.directory / "state"
        self._state.mkdir(parents=True, exist_ok=True)
        self._held = self._hold()
        self._documents: dict[str, dict[int, Document]] = {}
        for file in self._state.glob("*/*.json"):
            self._documents.setdefault(file.parent.name, {})[int(file.stem)] = json.loads(file.read_bytes())
        counter = self._state / "last_id"
        self._last = int(counter.read_text()) if counter.exists() else FIRST_ID

    def close(self) -> None:
        """Lets another server have the directory."""
        self._held.close()

    def next_id(self) -> int:
        """A number that nothing in this workspace has had."""
        with self.lock:
            self._last += 1
            write(self._state / "last_id", str(self._last).encode())
            return self._last

    def get(self, kind: str, key: int) -> Document | None:
        """One document; it is not to be changed."""
        return self._documents.get(kind, {}).get(key)

    def all(self, kind: str) -> list[Document]:
        """All documents of a kind."""
        with self.lock:
            return list(self._documents.get(kind, {}).values())

    def put(self, kind: str, key: int, document: Document) -> None:
        """Keeps a document, in place of the one before."""
        with self.lock:
            write(self._state / kind / f"{key}.json", json.dumps(document).encode())
            self._documents.setdefault(kind, {})[key] = document

    def drop(self, kind: str, key: int) -> None:
        """Forgets a document, if it is there."""
        with self.lock:
            (self._state / kind / f"{key}.json").unlink(missing_ok=True)
            self._documents.get(kind, {}).pop(key, None)

    def _hold(self) -> IO[bytes]:
        held = (self._state / "lock").open("ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held.close()
            raise SetupError(
                "another process serves this workspace",
                where=str(self.directory),
                fix="end it, or choose another directory",
            ) from error
        return held


def write(path: Path, content: bytes, *, overwrite: bool = True) -> None:
    """Writes a file as a whole or not at all; FileExistsError when it is there and must not be replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path) as temporary:
        temporary.write_bytes(content)
        if overwrite:
            temporary.replace(path)
        else:
            os.link(temporary, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A temporary file in the same directory, gone afterwards; lists leave it out."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=PART, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def parts(directory: Path) -> Iterator[Path]:
    """What lies in a directory, without what is being written."""
    return (path for path in sorted(directory.iterdir()) if not path.name.endswith(PART))
