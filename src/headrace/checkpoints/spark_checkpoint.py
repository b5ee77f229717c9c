"""Read what Spark has written into a checkpoint: the query's id, the planned and the completed batches, settings.

Each batch has a file in `offsets` when it is planned, and one in `commits` when its rows are written. Spark keeps the
newest hundred of each (4.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.checkpoints.checkpoint_files import CheckpointFiles


@dataclass(frozen=True)
class SparkCheckpoint:
    """The content of a checkpoint directory, as far as the start of a step depends on it."""

    query_id: str = ""  # empty: no query has been started with this checkpoint
    planned: tuple[int, ...] = ()  # the numbers of the files in `offsets`
    completed: tuple[int, ...] = ()  # the numbers of the files in `commits`
    settings: Mapping[str, str] = field(default_factory=dict)  # those that Spark restores from the last planned batch
    damage: tuple[str, ...] = ()  # a message for each file that is empty, truncated or missing

    @property
    def is_new(self) -> bool:
        """Whether no batch has been planned with this checkpoint."""
        return not (self.planned or self.completed)

    @property
    def last_planned(self) -> int:
        """The number of the last planned batch, or -1."""
        return max(self.planned, default=-1)

    @property
    def last_completed(self) -> int:
        """The number of the last completed batch, or -1."""
        return max(self.completed, default=-1)


def read_checkpoint(files: CheckpointFiles, path: str = "spark") -> SparkCheckpoint:
    """Return the content of the checkpoint at `path`, relative to `files.directory`.

    The checkpoint may be missing or damaged.
    """
    entry_sizes = files.sizes(path)
    offset_sizes, commit_sizes = files.sizes(f"{path}/offsets"), files.sizes(f"{path}/commits")
    planned, completed = _numbers(offset_sizes), _numbers(commit_sizes)
    query_id, damage = "", list(_missing_files(planned, completed))
    damage += [
        f"{directory}/{number} is empty"
        for directory, sizes in (("offsets", offset_sizes), ("commits", commit_sizes))
        for number in _numbers(sizes)
        if sizes[str(number)] == 0
    ]
    if "metadata" in entry_sizes:
        query_id = str(_json(files.read(f"{path}/metadata")).get("id", ""))
        if not query_id:
            damage.append(f"metadata is {'truncated' if entry_sizes['metadata'] else 'empty'}")
    elif planned or completed:
        damage.append("metadata is missing")
    settings: dict[str, str] = {}
    if planned and offset_sizes[str(planned[-1])]:
        # The lines are a version, metadata as JSON, and the offset of each source, or "-" if it has none yet.
        lines = (files.read(f"{path}/offsets/{planned[-1]}") or b"").splitlines()
        is_complete = len(lines) >= 3 and all(line == b"-" or _is_json(line) for line in lines[1:])
        settings = _json(lines[1]).get("conf", {}) if is_complete else {}
        if not is_complete:
            damage.append(f"offsets/{planned[-1]} is truncated")
    return SparkCheckpoint(query_id, planned, completed, settings, tuple(damage))


def read_offsets(files: CheckpointFiles, path: str, batch: int) -> list[Any]:
    """Return the end offset of each source in a batch, as Spark stores it; None for a source without an offset."""
    lines = (files.read(f"{path}/offsets/{batch}") or b"").splitlines()[2:]
    return [None if line == b"-" else json.loads(line) for line in lines]


def _missing_files(planned: tuple[int, ...], completed: tuple[int, ...]) -> Iterable[str]:
    """Yield a message for each missing file.

    Files are missing if the numbers have gaps, if the last completed batch has no offsets, or if the batch before the
    last planned one has no commit.
    """
    for directory, numbers in (("offsets", planned), ("commits", completed)):
        gaps = sorted(set(range(numbers[0], numbers[-1])) - set(numbers)) if numbers else []
        yield from (f"{directory}/{number} is missing" for number in gaps)
    if completed and (not planned or planned[-1] < completed[-1]):
        yield f"offsets/{completed[-1]} is missing"
    if planned and planned[-1] > 0 and (not completed or completed[-1] < planned[-1] - 1):
        yield f"commits/{planned[-1] - 1} is missing"


def _numbers(entries: Iterable[str]) -> tuple[int, ...]:
    """Return the batch numbers among the names of entries, in ascending order."""
    return tuple(sorted(int(name) for name in entries if name.isdigit()))


def _json(content: bytes | None) -> dict[str, Any]:
    """Return the content as a JSON object; an empty one if the content is something else."""
    try:
        value = json.loads(content or b"")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_json(line: bytes) -> bool:
    """Return whether a line of an offsets file is JSON: an object, or for the rate source a number."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
