"""Copy what Spark's planner reads of a checkpoint: offsets, commits and the metadata of the state, but no state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path


class CheckpointCopy:
    """A copy that is prepared for its next batch as a restart of the query would do it. Spark may write into it."""

    def __init__(self, checkpoint: Path, directory: Path) -> None:
        self.directory = directory
        for name in ("offsets", "commits"):
            (directory / name).mkdir(parents=True)
            for number in _batches(checkpoint / name)[-2:]:
                shutil.copy(checkpoint / name / str(number), directory / name)
        shutil.copy(checkpoint / "metadata", directory)
        for operator in sorted((checkpoint / "state").glob("*")):
            for metadata in (operator / "_metadata", operator / "_stateSchema"):
                _copy_directory(metadata, checkpoint, directory)
            for metadata in (operator / "0").rglob("_metadata"):  # all partitions have the schema of partition 0
                _copy_directory(metadata, checkpoint, directory)
        planned = _batches(directory / "offsets")
        self._last_offsets = directory / "offsets" / str(planned[-1]) if planned else None
        self.next_batch = max(_batches(directory / "commits"), default=-1) + 1
        offsets = directory / "offsets" / str(self.next_batch)
        if self._last_offsets and not offsets.exists():  # a restart logs the offsets of a batch before it plans it
            shutil.copy(self._last_offsets, offsets)

    @property
    def has_batches(self) -> bool:
        """Whether a batch has been planned with the checkpoint."""
        return self._last_offsets is not None

    @property
    def state(self) -> str:
        """The directory of the state, which has metadata but no rows."""
        return str(self.directory / "state")

    def settings(self) -> dict[str, str]:
        """Return the session settings with which a restart plans: shuffle partitions, state store and others.

        Return an empty dictionary if no batch has been planned.
        """
        if self._last_offsets is None:
            return {}
        lines = self._last_offsets.read_text(encoding="utf-8").splitlines()
        return {key: str(value) for key, value in json.loads(lines[1])["conf"].items()}


def _batches(directory: Path) -> list[int]:
    files = directory.iterdir() if directory.is_dir() else ()
    return sorted(int(file.name) for file in files if file.name.isdigit())


def _copy_directory(source: Path, checkpoint: Path, directory: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, directory / source.relative_to(checkpoint), dirs_exist_ok=True)
