"""How far a step is behind its sources: files, offsets or commits that are there and not yet read.

Kafka tells it itself; of files and Delta tables Spark says only what was read (4.2.0), so the rest is counted where
they lie on this machine. Elsewhere it is not known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from headrace.config.models import local_path

MAX_LOG_BYTES = 16 << 20  # bytes of a source's log that are worth reading after each batch: about 120,000 files


def total_lag(sources: Sequence[Mapping[str, Any]], checkpoint: str) -> int | None:
    """The sum over the sources that can tell; None when none can."""
    told = [_of(source, Path(checkpoint) / "sources" / str(number)) for number, source in enumerate(sources)]
    known = [lag for lag in told if lag is not None]
    return sum(known) if known else None


def directory_fingerprint(place: str) -> int | None:
    """Return a number that changes when files come or go; None when it is not a readable local directory."""
    path = local_path(place)
    if not path or _is_pattern(place):
        return None
    try:
        return hash(frozenset(list_files(Path(path))))
    except OSError:
        return None


def has_long_file_log(checkpoint: str) -> bool:
    """Whether a query's list of the files that it has read is so long that each start takes long to read it."""
    return any(log.stat().st_size > MAX_LOG_BYTES for log in Path(checkpoint).glob("sources/*/*.compact"))


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[{")


def _of(source: Mapping[str, Any], log: Path) -> int | None:
    kind, _, place = source["description"].rstrip("]").partition("[")
    directory = Path(local_path(place))
    try:
        if "Kafka" in kind:
            # A batch that is repeated after a crash does not ask for the latest (4.2.0).
            return _offsets(source["endOffset"], source["latestOffset"]) if source["latestOffset"] else None
        if kind == "FileStreamSource" and place.startswith("file:") and not _is_pattern(place):
            return max(0, sum(1 for _ in list_files(directory)) - count_files_read(log))
        if kind == "DeltaSource" and place.startswith("file:"):
            return _commits_after(_last_read(source["endOffset"]), directory)
    except (OSError, KeyError, TypeError, ValueError):  # nobody fails because a lag is not known
        return None
    return None


def _offsets(read: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]]) -> int:
    return sum(
        end - read.get(topic, {}).get(partition, 0) for topic, ends in latest.items() for partition, end in ends.items()
    )


def list_files(directory: Path) -> Iterator[str]:
    """Yield what Spark's listing finds: through links, but not through dangling ones or those that lead back up."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if _is_hidden(entry.name) or (entry.is_symlink() and not _is_followed(Path(entry))):
                continue
            if entry.is_dir():
                yield from list_files(Path(entry))
            else:
                yield entry.path


def _is_followed(link: Path) -> bool:
    """Whether `headrace.LocalFiles` follows the link."""
    return link.exists() and not link.parent.resolve().is_relative_to(link.resolve())


def _is_hidden(name: str) -> bool:
    """Whether Spark overlooks it: a partition by a column `_day` it does not (4.2.0)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def count_files_read(log: Path) -> int:
    """Return how many files a source has read, by its log in the checkpoint.

    Spark writes a line for each file that it has read, and every ten batches all of them into one `.compact`.
    """
    batches = {int(file.name.partition(".")[0]): file for file in log.iterdir() if file.name[0].isdigit()}
    compacted = max((number for number, file in batches.items() if file.suffix == ".compact"), default=-1)
    counted = [file for number, file in batches.items() if number >= compacted]
    if sum(file.stat().st_size for file in counted) > MAX_LOG_BYTES:
        raise ValueError("too much to read after each batch")
    return sum(len(file.read_text().splitlines()) - 1 for file in counted)


def _commits_after(version: int, table: Path) -> int:
    if not table.is_dir():
        raise FileNotFoundError(table)
    log = table / "_delta_log"
    return next(number for number in count() if not (log / f"{version + number + 1:020}.json").exists())


def _last_read(offset: Mapping[str, Any]) -> int:
    """A Delta offset names the next commit, or one that has been read in part."""
    return int(offset["reservoirVersion"]) - (1 if int(offset["index"]) < 0 else 0)
