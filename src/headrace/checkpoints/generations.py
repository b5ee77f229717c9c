"""The checkpoint generations of a step: which one is current, and what a reset did to the step's tables.

A reset writes `generation.json` in the step's directory, which makes the new generation current in one atomic change.
The file also names the tables that the next start of the step has to truncate.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from headrace.checkpoints.checkpoint_files import CheckpointFiles
from headrace.errors import GuardError

FILE = "generation.json"
FORMAT = 1
FIRST_GENERATION = 1
Origin = Literal["kept", "truncated", "adopted"]  # kept or truncated by a reset, or adopted with `checkpoint adopt`


@dataclass(frozen=True)
class AcceptedTable:
    """A table that a generation may write to, although the table has rows that this generation did not write."""

    id: str
    origin: Origin
    version: int  # of the table at the time of the reset or adoption, so before the table is truncated
    queries: list[str] = field(default_factory=list)  # the ids of all queries that had written the table until then
    is_pending: bool = False  # its truncation is pending: the next start of the step truncates it

    def pending(self) -> AcceptedTable:
        """Return the table as one that the next start truncates."""
        return replace(self, is_pending=True)

    def truncated(self) -> AcceptedTable:
        """Return the table as one that has been truncated."""
        return replace(self, is_pending=False)


@dataclass(frozen=True)
class Generation:
    """The current generation of a step."""

    number: int = FIRST_GENERATION
    highest: int = FIRST_GENERATION  # the highest number that the step has ever used; no number is used twice
    previous: int = 0  # the generation that `reset --undo` returns to; 0: none
    started_at: str = ""  # the time of the last reset; empty if there was none
    tables: dict[str, AcceptedTable] = field(default_factory=dict)  # by name
    # By table, the version that the RESTORE of `reset --undo` created. No rows are missing from this version.
    restored: dict[str, int] = field(default_factory=dict)
    # By input, the options of Spark's reader that say where a reset lets the input start; without options, it starts
    # where new checkpoints start.
    starts: dict[str, dict[str, str]] = field(default_factory=dict)

    def next(
        self, tables: dict[str, AcceptedTable], starts: dict[str, dict[str, str]], *, has_batches: bool = True
    ) -> Generation:
        """Return the generation that a reset starts. `tables` are the existing tables of the step, by name.

        `has_batches` says whether this generation has planned a batch. If it has none, and has truncated no table,
        undoing the new reset skips it and returns to `previous`, if there is one. For `starts`, see the class.
        """
        number = self.highest + 1
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        is_unused = not has_batches and all(
            table.is_pending or table.origin != "truncated" for table in self.tables.values()
        )
        previous = self.previous if is_unused and self.previous else self.number
        return Generation(number, number, previous, started_at, tables, starts=starts)

    def undone(self, restored: dict[str, int]) -> Generation:
        """Return the previous generation, which `reset --undo` makes current. For `restored`, see the class."""
        return Generation(self.previous, self.highest, started_at=self.started_at, restored=restored)

    @property
    def pending_tables(self) -> dict[str, AcceptedTable]:
        """The tables that the next start of the step truncates."""
        return {name: table for name, table in self.tables.items() if table.is_pending}

    def with_table(self, name: str, table: AcceptedTable) -> Generation:
        """Return the generation with one accepted table added or replaced."""
        return replace(self, tables={**self.tables, name: table})


def read_generation(files: CheckpointFiles) -> Generation:
    """Return the current generation of the step whose directory `files` gives access to.

    Return the first generation if the step was never reset, so that the file is missing. Raise GuardError if the file
    cannot be parsed.
    """
    content = files.read(FILE)
    if content is None:
        return Generation()
    try:
        values: dict[str, Any] = json.loads(content)
        if values.pop("format") != FORMAT:
            raise ValueError("unknown format")
        tables = {name: AcceptedTable(**table) for name, table in values.pop("tables").items()}
        return Generation(**values, tables=tables)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GuardError(
            f"{FILE} cannot be read: {error}",
            where=f"{files.directory}/{FILE}",
            fix="restore the file, or use the version of Headrace that wrote it",
        ) from error


def write_generation(files: CheckpointFiles, generation: Generation) -> None:
    """Write `generation.json`, which makes this generation the current one."""
    files.write(FILE, (json.dumps({"format": FORMAT, **asdict(generation)}, indent=2) + "\n").encode())
