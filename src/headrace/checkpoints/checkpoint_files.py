"""The small files of a checkpoint directory, on this machine's disk or in any other file system of Hadoop."""

from __future__ import annotations

import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headrace.config.models import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CheckpointFiles(Protocol):
    """Access to the files below one directory; paths are relative to it."""

    directory: str

    def sizes(self, path: str = "") -> dict[str, int]:
        """Return the sizes of a directory's entries by name, 0 for subdirectories; empty if it is missing."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it is missing."""

    def write(self, path: str, content: bytes) -> None:
        """Write or replace a file atomically. Missing directories are created."""

    def move(self, path: str, target: str) -> None:
        """Rename a directory. The target must not exist; directories above it are created."""

    def delete(self, path: str) -> None:
        """Delete a directory with everything in it, if it exists."""


def open_files(directory: str, spark: SparkSession | None = None) -> CheckpointFiles:
    """Return access to a directory.

    A directory that is not on this machine's disk needs a session; without one, raise ValueError.
    """
    path = local_path(directory)
    return DiskFiles(path) if path else HadoopFiles(directory, spark)


class DiskFiles:
    """Files on this machine's disk."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def sizes(self, path: str = "") -> dict[str, int]:
        """See CheckpointFiles."""
        entries = {}
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in (Path(self.directory) / path).iterdir():
                with suppress(FileNotFoundError):  # deleted in the meantime
                    entries[entry.name] = 0 if entry.is_dir() else entry.stat().st_size
        return entries

    def read(self, path: str) -> bytes | None:
        """See CheckpointFiles."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return (Path(self.directory) / path).read_bytes()
        return None

    def write(self, path: str, content: bytes) -> None:
        """See CheckpointFiles."""
        file = Path(self.directory) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
        try:
            temporary.write_bytes(content)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)

    def move(self, path: str, target: str) -> None:
        """See CheckpointFiles."""
        destination = Path(self.directory) / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        (Path(self.directory) / path).rename(destination)

    def delete(self, path: str) -> None:
        """See CheckpointFiles."""
        with suppress(FileNotFoundError):
            shutil.rmtree(Path(self.directory) / path)


class HadoopFiles:
    """Files that are reached through the JVM, such as those of an object store."""

    def __init__(self, directory: str, spark: SparkSession | None) -> None:
        if spark is None:
            raise ValueError(f"{directory} can only be read with a session")
        self.directory = directory.rstrip("/")
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._system = self._path("").getFileSystem(context._jsc.hadoopConfiguration())

    def sizes(self, path: str = "") -> dict[str, int]:
        """See CheckpointFiles."""
        if not self._system.exists(self._path(path)):
            return {}
        statuses = self._system.listStatus(self._path(path))
        return {status.getPath().getName(): 0 if status.isDirectory() else status.getLen() for status in statuses}

    def read(self, path: str) -> bytes | None:
        """See CheckpointFiles."""
        if not self._system.exists(self._path(path)):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """See CheckpointFiles. If the store's rename does not replace files, as in HDFS, delete the old file first.

        In that case, the write is not atomic: if it is interrupted, the file may be missing.
        """
        target, temporary = self._path(path), self._path(f"{path}.{uuid.uuid4().hex}")
        stream = self._system.create(temporary, True)
        stream.write(bytearray(content))
        stream.close()
        if not self._system.rename(temporary, target):
            self._system.delete(target, False)
            if not self._system.rename(temporary, target):
                raise OSError(f"{target.toString()} cannot be written")

    def move(self, path: str, target: str) -> None:
        """See CheckpointFiles."""
        destination = self._path(target)
        self._system.mkdirs(destination.getParent())
        if not self._system.rename(self._path(path), destination):
            raise OSError(f"{self._path(path).toString()} cannot be moved to {destination.toString()}")

    def delete(self, path: str) -> None:
        """See CheckpointFiles."""
        self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.directory}/{path}".rstrip("/"))
