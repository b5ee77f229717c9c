"""Measure the lag of a step: the files, records or commits that its sources have and the step has not read yet.

For Kafka, Spark reports the latest offsets. For files and Delta tables, Spark only reports the offsets that were read
(4.2.0), so the available files and commits are counted on this machine's disk. The lag of other sources is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from headrace.config.models import local_path

# The lag is unknown if a source's log of the files that it has read is longer (about 120,000 files).
MAX_LOG_BYTES = 16 << 20


class Lag(NamedTuple):
    """The lag of one source."""

    amount: int
    unit: str  # "files", "records" or "commits"


def source_lags(sources: Sequence[Mapping[str, Any]], checkpoint: str) -> list[Lag | None]:
    """Return the lag of each source of Spark's progress report of a batch; None if it is unknown."""
    return [_source_lag(source, Path(checkpoint) / "sources" / str(number)) for number, source in enumerate(sources)]


def total_lag(lags: Sequence[Lag | None]) -> dict[str, int]:
    """Return the sum of the known lags by unit."""
    total: dict[str, int] = {}
    for lag in lags:
        if lag is not None:
            total[lag.unit] = total.get(lag.unit, 0) + lag.amount
    return total


def directory_fingerprint(path: str) -> int | None:
    """Return a number that changes when files are added to a directory or removed from it.

    Return None if the path is a glob pattern, or not a readable directory on this machine's disk.
    """
    directory = local_path(path)
    if not directory or _is_pattern(path):
        return None
    try:
        return hash(frozenset(list_files(Path(directory))))
    except OSError:
        return None


def has_long_file_log(checkpoint: str) -> bool:
    """Return whether a query has read so many files that loading their list makes each start of the query slow."""
    return any(log.stat().st_size > MAX_LOG_BYTES for log in Path(checkpoint).glob("sources/*/*.compact"))


def list_files(directory: Path) -> Iterator[str]:
    """Yield the paths of the files that Spark lists in a directory and its subdirectories.

    Symbolic links are followed, except broken links and links to a parent directory.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if _is_hidden(entry.name) or (entry.is_symlink() and not _is_followed(Path(entry))):
                continue
            if entry.is_dir():
                yield from list_files(Path(entry))
            else:
                yield entry.path


def count_files_read(log: Path) -> int:
    """Return how many files a source has read, according to its log in the checkpoint.

    Spark writes a log file per batch: a line with a version, then a line for each file that the batch has read. The log
    file of every tenth batch, `N.compact`, also has the lines of all earlier batches. Raise ValueError if the last such
    log file and those after it are longer than MAX_LOG_BYTES.
    """
    batches = {int(file.name.partition(".")[0]): file for file in log.iterdir() if file.name[0].isdigit()}
    compacted = max((number for number, file in batches.items() if file.suffix == ".compact"), default=-1)
    files = [file for number, file in batches.items() if number >= compacted]
    if sum(file.stat().st_size for file in files) > MAX_LOG_BYTES:
        raise ValueError("too much to read after each batch")
    return sum(len(file.read_text().splitlines()) - 1 for file in files)


def _source_lag(source: Mapping[str, Any], log: Path) -> Lag | None:
    """Return the lag of one source of Spark's progress report of a batch; None if it is unknown.

    `log` is a file source's log of the files that it has read.
    """
    kind, _, path = source["description"].rstrip("]").partition("[")
    directory = Path(local_path(path))
    try:
        if "Kafka" in kind:
            # Spark reports no latest offsets for a batch that is repeated after a crash (4.2.0).
            latest = source["latestOffset"]
            return Lag(_records_between(source["endOffset"], latest), "records") if latest else None
        if kind == "FileStreamSource" and path.startswith("file:") and not _is_pattern(path):
            available = sum(1 for _ in list_files(directory))
            return Lag(max(0, available - count_files_read(log)), "files")
        if kind == "DeltaSource" and path.startswith("file:"):
            return Lag(_commits_after(_last_version_read(source["endOffset"]), directory), "commits")
    except (OSError, KeyError, TypeError, ValueError):  # report the lag as unknown instead of failing the run
        return None
    return None


def _records_between(start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> int:
    """Return the number of records between two offsets of Kafka, which map topics to partitions to positions.

    The start of a partition that is only in `end` counts as 0.
    """
    return sum(
        position - start.get(topic, {}).get(partition, 0)
        for topic, positions in end.items()
        for partition, position in positions.items()
    )


def _commits_after(version: int, table: Path) -> int:
    """Return how many consecutive commits after this version are in the table's log.

    Raise FileNotFoundError if the table does not exist.
    """
    if not table.is_dir():
        raise FileNotFoundError(table)
    log = table / "_delta_log"
    return next(number for number in count() if not (log / f"{version + number + 1:020}.json").exists())


def _last_version_read(offset: Mapping[str, Any]) -> int:
    """Return the version of the last commit of which at least one file was read.

    An offset of Delta has the version of a commit and the index of the last file read in it. The index is negative if
    no file of the commit was read yet.
    """
    return int(offset["reservoirVersion"]) - (1 if int(offset["index"]) < 0 else 0)


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[{")


def _is_followed(link: Path) -> bool:
    """Return whether the file system of the local engine, `LocalFiles.java`, follows the link.

    It does not follow broken links and links to a parent directory.
    """
    return link.exists() and not link.parent.resolve().is_relative_to(link.resolve())


def _is_hidden(name: str) -> bool:
    """Return whether Spark ignores a file or folder of this name.

    Spark does not ignore a partition folder whose column begins with "_" (4.2.0).
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
