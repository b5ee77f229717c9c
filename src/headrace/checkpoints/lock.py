"""Allow only one run at a time to use a step's checkpoints, by a file lock that belongs to the run's JVM.

The JVM writes the checkpoints, and outlives a killed Python process by seconds. The lock ends when the JVM ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.models import local_path
from headrace.errors import GuardError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Files that this process's JVM has locked. The JVM must not open them again: when a process closes any handle of a
# locked file, it loses its lock (POSIX).
LOCKED: set[Path] = set()


def is_local(directory: str) -> bool:
    """Return whether the directory is on a local disk, where file locks work."""
    # /Volumes is an object store on Databricks, but contains local disks on macOS.
    on_databricks = "DATABRICKS_RUNTIME_VERSION" in os.environ
    return bool(local_path(directory)) and not (on_databricks and directory.startswith("/Volumes/"))


def require_unlocked(directory: str, step: str) -> None:
    """Raise GuardError if another process has locked the step's checkpoints. Do nothing for a remote directory.

    Unlike `Lock`, this needs no session.
    """
    path = Path(local_path(directory)) / "lock"
    if not is_local(directory) or not path.is_file():
        return
    with path.open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _locked_error(path, directory, step) from None


def _locked_error(path: Path, directory: str, step: str) -> GuardError:
    """Return the error for a step whose lock file another run has locked. The file contains the owner of the lock."""
    owner = path.read_text().strip() or "another process"
    return GuardError(
        f"step {step!r} is already being run by {owner}",
        where=directory,
        fix="stop that run (`headrace stop`, or Ctrl-C in its terminal), then start again",
    )


class Lock:
    """Lock on a step's checkpoints, acquired by the constructor and kept until `release` or the end of the JVM.

    The constructor raises GuardError if another run has the lock, or if the lock file cannot be opened or locked. For a
    remote directory, the constructor and `release` do nothing, because files there cannot be locked.
    """

    def __init__(self, spark: SparkSession, directory: str, step: str) -> None:
        self._file: Any = None
        self._path = (Path(local_path(directory)) / "lock").absolute()
        if not is_local(directory):
            return
        if self._path in LOCKED:
            raise _locked_error(self._path, directory, step)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        jvm: Any = spark._jvm
        try:
            file = jvm.java.io.RandomAccessFile(str(self._path), "rw")
            has_lock = file.getChannel().tryLock() is not None
        except Exception as error:
            fix = "check the owner and permissions of its lock file; a network drive must support file locks"
            raise GuardError(f"step {step!r} cannot be locked: {one_line(error)}", where=directory, fix=fix) from error
        if not has_lock:
            file.close()
            raise _locked_error(self._path, directory, step)
        self._file, self._inode = file, self._path.stat().st_ino
        LOCKED.add(self._path)
        jvm_pid = jvm.java.lang.ProcessHandle.current().pid()
        self._file.setLength(0)
        self._file.writeBytes(f"process {jvm_pid}")

    @property
    def is_lost(self) -> bool:
        """Whether the lock file was removed or replaced, so that it does not stop other runs any more."""
        try:
            return self._file is not None and self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def release(self) -> None:
        """Release the lock. Do nothing if it was released before."""
        if self._file is not None:
            LOCKED.discard(self._path)
            self._file.close()
            self._file = None
