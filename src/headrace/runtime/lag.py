"""How far a step is behind its sources: files, records or commits that are available and not yet read.

For Kafka, Spark reports the latest offsets. For files and Delta tables it only reports what was read (4.2.0), so the
rest is counted on this machine's disk. Elsewhere the lag is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from headrace.config.models import local_path

MAX_LOG_BYTES = 16 << 20  # of a source's log that is read after each batch: about 120,000 files
Lag = tuple[int, str]  # with its unit


def source_lags(sources: Sequence[Mapping[str, Any]], checkpoint: str) -> list[Lag | None]:
    """Return the lag of each source of a batch report; None if it is unknown."""
    return [_source_lag(source, Path(checkpoint) / "sources" / str(number)) for number, source in enumerate(sources)]


def total_lag(lags: Sequence[Lag | None]) -> dict[str, int]:
    """Return the sum of the known lags by unit."""
    total: dict[str, int] = {}
    for number, unit in filter(None, lags):
        total[unit] = total.get(unit, 0) + number
    return total


def directory_fingerprint(path: str) -> int | None:
    """Return a number that changes when files come or go; None if it is not a readable local directory."""
    directory = local_path(path)
    if not directory or _is_pattern(path):
        return None
    try:
        return hash(frozenset(list_files(Path(directory))))
    except OSError:
        return None


def has_long_file_log(checkpoint: str) -> bool:
    """Return whether a query has read so many files that loading its list of them makes each start slow."""
    return any(log.stat().st_size > MAX_LOG_BYTES for log in Path(checkpoint).glob("sources/*/*.compact"))


def list_files(directory: Path) -> Iterator[str]:
    """Yield the files that Spark lists: through links, but not through broken ones or those to a parent directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if _is_hidden(entry.name) or (entry.is_symlink() and not _is_followed(Path(entry))):
                continue
            if entry.is_dir():
                yield from list_files(Path(entry))
            else:
                yield entry.path


def count_files_read(log: Path) -> int:
    """Return how many files a source has read, by its log in the checkpoint.

    Spark writes a line for each file that it has read, and every ten batches all of them into one `.compact` file.
    """
    batches = {int(file.name.partition(".")[0]): file for file in log.iterdir() if file.name[0].isdigit()}
    compacted = max((number for number, file in batches.items() if file.suffix == ".compact"), default=-1)
    files = [file for number, file in batches.items() if number >= compacted]
    if sum(file.stat().st_size for file in files) > MAX_LOG_BYTES:
        raise ValueError("too much to read after each batch")
    return sum(len(file.read_text().splitlines()) - 1 for file in files)


def _source_lag(source: Mapping[str, Any], log: Path) -> Lag | None:
    kind, _, path = source["description"].rstrip("]").partition("[")
    directory = Path(local_path(path))
    try:
        if "Kafka" in kind:
            # A batch that is repeated after a crash reports no latest offsets (4.2.0).
            latest = source["latestOffset"]
            return (_records_between(source["endOffset"], latest), "records") if latest else None
        if kind == "FileStreamSource" and path.startswith("file:") and not _is_pattern(path):
            return max(0, sum(1 for _ in list_files(directory)) - count_files_read(log)), "files"
        if kind == "DeltaSource" and path.startswith("file:"):
            return _commits_after(_last_version_read(source["endOffset"]), directory), "commits"
    except (OSError, KeyError, TypeError, ValueError):  # an unknown lag is no reason to fail
        return None
    return None


def _records_between(read: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]]) -> int:
    return sum(
        end - read.get(topic, {}).get(partition, 0) for topic, ends in latest.items() for partition, end in ends.items()
    )


def _commits_after(version: int, table: Path) -> int:
    if not table.is_dir():
        raise FileNotFoundError(table)
    log = table / "_delta_log"
    return next(number for number in count() if not (log / f"{version + number + 1:020}.json").exists())


def _last_version_read(offset: Mapping[str, Any]) -> int:
    """Return the last commit that was read completely: the offset names the next one, or one that was read in part."""
    return int(offset["reservoirVersion"]) - (1 if int(offset["index"]) < 0 else 0)


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[{")


def _is_followed(link: Path) -> bool:
    """Return whether `headrace.LocalFiles` follows the link."""
    return link.exists() and not link.parent.resolve().is_relative_to(link.resolve())


def _is_hidden(name: str) -> bool:
    """Return whether Spark ignores the file; it does not ignore a partition folder of a column `_day` (4.2.0)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
