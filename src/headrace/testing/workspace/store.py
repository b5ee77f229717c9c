"""The storage of the workspace: a JSON file for each document, in a directory that is read again after a restart."""

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

INITIAL_LAST_ID = 1000  # in a new workspace, so that the first id is 1001
PARTIAL_SUFFIX = ".part"  # of files that are being written


class Store:
    """Documents by kind and id. Callers must hold `lock` while they change several documents."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.lock = threading.RLock()
        self._state = self.directory / "state"
        self._state.mkdir(parents=True, exist_ok=True)
        self._lock_file = self._lock_directory()
        self._documents: dict[str, dict[int, Document]] = {}
        for file in self._state.glob("*/*.json"):
            self._documents.setdefault(file.parent.name, {})[int(file.stem)] = json.loads(file.read_bytes())
        counter = self._state / "last_id"
        self._last_id = int(counter.read_text()) if counter.exists() else INITIAL_LAST_ID

    def close(self) -> None:
        """Unlock the directory, so that another server can use it."""
        self._lock_file.close()

    def next_id(self) -> int:
        """Return an id that has never been used in this workspace."""
        with self.lock:
            self._last_id += 1
            write_file(self._state / "last_id", str(self._last_id).encode())
            return self._last_id

    def get(self, kind: str, key: int) -> Document | None:
        """Return a document, which callers must not change, or None if it does not exist."""
        return self._documents.get(kind, {}).get(key)

    def all(self, kind: str) -> list[Document]:
        """Return all documents of a kind."""
        with self.lock:
            return list(self._documents.get(kind, {}).values())

    def put(self, kind: str, key: int, document: Document) -> None:
        """Create or replace a document."""
        with self.lock:
            write_file(self._state / kind / f"{key}.json", json.dumps(document).encode())
            self._documents.setdefault(kind, {})[key] = document

    def delete(self, kind: str, key: int) -> None:
        """Delete a document if it exists."""
        with self.lock:
            (self._state / kind / f"{key}.json").unlink(missing_ok=True)
            self._documents.get(kind, {}).pop(key, None)

    def _lock_directory(self) -> IO[bytes]:
        """Return the open lock file; raise SetupError if another process has locked it."""
        lock_file = (self._state / "lock").open("ab")
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock_file.close()
            raise SetupError(
                "another process is serving this workspace directory",
                where=str(self.directory),
                fix="stop that process, or choose another directory",
            ) from error
        return lock_file


def write_file(path: Path, content: bytes, *, overwrite: bool = True) -> None:
    """Write a file atomically, and create its directory if needed.

    Raise FileExistsError if the file exists and `overwrite` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_file(path) as temporary:
        temporary.write_bytes(content)
        if overwrite:
            temporary.replace(path)
        else:
            os.link(temporary, path)


@contextmanager
def _temporary_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`, which `list_entries` leaves out, and delete the file afterwards."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=PARTIAL_SUFFIX, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def list_entries(directory: Path) -> Iterator[Path]:
    """Return the entries of a directory, sorted by path, without files that are being written."""
    return (path for path in sorted(directory.iterdir()) if not path.name.endswith(PARTIAL_SUFFIX))
