"""One driver at a time on a checkpoint: a file lock held by the JVM, the process that writes.

The JVM outlives a killed Python driver by seconds; its lock lives exactly as long as its writes can.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.models import local_path
from headrace.errors import GuardError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# What this process holds: whoever closes any handle of a locked file gives its lock up for the whole process (POSIX).
HELD: set[Path] = set()


def is_local(directory: str) -> bool:
    """Whether the directory is on this machine's disk, where file locks hold."""
    on_databricks = "DATABRICKS_RUNTIME_VERSION" in os.environ  # elsewhere /Volumes may hold a disk: macOS
    return bool(local_path(directory)) and not (on_databricks and directory.startswith("/Volumes/"))


class Lock:
    """Held from construction to `release`, or to the JVM's death."""

    def __init__(self, spark: SparkSession, directory: str, step: str) -> None:
        self._file: Any = None
        self._path = (Path(local_path(directory)) / "lock").absolute()
        if not is_local(directory):
            return
        if self._path in HELD:
            raise self._refusal(directory, step)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        jvm: Any = spark._jvm
        try:
            file = jvm.java.io.RandomAccessFile(str(self._path), "rw")
            is_ours = file.getChannel().tryLock() is not None
        except Exception as error:
            fix = "see to the owner and permissions of its lock file; a network drive must know locks"
            raise GuardError(f"step {step!r} cannot be locked: {one_line(error)}", where=directory, fix=fix) from error
        if not is_ours:
            file.close()
            raise self._refusal(directory, step)
        self._file = file
        HELD.add(self._path)
        process = jvm.java.lang.ProcessHandle.current().pid()
        self._file.setLength(0)
        self._file.writeBytes(f"process {process}")

    def release(self) -> None:
        """Lets the next one in."""
        if self._file is not None:
            HELD.discard(self._path)
            self._file.close()
            self._file = None

    def _refusal(self, directory: str, step: str) -> GuardError:
        owner = self._path.read_text().strip() or "another process"
        return GuardError(
            f"step {step!r} is already run by {owner}",
            where=directory,
            fix="stop that run (`headrace stop`, or Ctrl-C there), then start again",
        )
