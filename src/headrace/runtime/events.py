"""Turns Spark's batch reports into events: a JSON line each in the environment's directory, and for whoever watches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

LOG_ROTATED = "events set aside"  # begins a file; what is known of the run and its steps is repeated after it
RUN_ENDED = ("run ended", "run stopped", "run failed")


@dataclass(frozen=True)
class Event:
    """One batch of one step, or the begin or end of a run or a step (`what`)."""

    what: str
    at: str
    pipeline: str
    run: str
    process: int
    step: str = ""
    batch: int = -1
    rows: int = 0
    rows_per_second: float = 0.0
    milliseconds: int = 0
    behind: int | None = None
    watermark: str | None = None
    state_rows: int = 0
    late: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    message: str = ""


KNOWN = {one.name for one in fields(Event)}  # another version may have told more


def events_file(directory: Path, pipeline: str) -> Path:
    """Where a pipeline's events lie in an environment's directory."""
    return directory / "events" / f"{pipeline}.jsonl"


def alive_file(directory: Path, pipeline: str, run: str) -> Path:
    """The file that a run holds for as long as it goes on."""
    return directory / "events" / f"{pipeline}.{run}.alive"


def read_events(directory: Path, pipeline: str) -> Iterator[Event]:
    """All recorded events of a pipeline, oldest first."""
    newest = events_file(directory, pipeline)
    for file in (newest.with_suffix(".1.jsonl"), newest):
        if not file.exists():
            continue
        with file.open() as lines:
            for line in lines:
                with suppress(json.JSONDecodeError):  # a line that a killed process did not finish
                    told = json.loads(line)
                    yield Event(**{key: value for key, value in told.items() if key in KNOWN})


def format_batch(event: Event) -> str:
    """A batch in one line."""
    parts = [f"{event.step}: batch {event.batch}, {event.rows} rows in {event.milliseconds} ms"]
    if event.behind:
        parts.append(f"{event.behind} behind")
    if event.state_rows:
        parts.append(f"{event.state_rows} in state")
    for count, what in (
        (event.late, "late"),
        (event.duplicates, "duplicates"),
        (sum(event.refused.values()), "refused"),
        (sum(event.dropped.values()), "dropped"),
        (sum(event.warned.values()), "warned of"),
    ):
        if count:
            parts.append(f"{count} {what}")
    return ", ".join(parts)
