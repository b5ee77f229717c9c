"""One driver at a time on a checkpoint: a file lock held by the JVM, the process that writes.

The JVM outlives a killed Python driver by seconds; its lock lives exactly as long as its writes can.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import GuardError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_local(directory: str) -> bool:
    """Whether the directory is on this machine's disk, where file locks hold."""
    return "://" not in directory and not directory.startswith("/Volumes/")


class Lock:
    """Held from construction to `release`, or to the JVM's death."""

    def __init__(self, spark: SparkSession, directory: str, step: str) -> None:
        self._file: Any = None
        if not is_local(directory):
            return
        path = Path(directory) / "lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        jvm: Any = spark._jvm
        self._file = jvm.java.io.RandomAccessFile(str(path), "rw")
        try:
            held = self._file.getChannel().tryLock()
        except Exception:  # OverlappingFileLockException: this very JVM holds it
            held = None
        if held is None:
            self._file.close()
            owner = path.read_text().strip() or "another process"
            raise GuardError(
                f"step {step!r} is already run by {owner}",
                where=directory,
                fix="stop that run (`headrace stop`, or Ctrl-C there), then start again",
            )
        process = jvm.java.lang.ProcessHandle.current().pid()
        self._file.setLength(0)
        self._file.writeBytes(f"process {process}")

    def release(self) -> None:
        """Lets the next one in."""
        if self._file is not None:
            self._file.close()
            self._file = None
