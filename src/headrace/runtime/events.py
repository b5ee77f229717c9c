"""Events of a run: the record of each batch, and of what happens to runs and steps; one JSON line each.

The files are an on-disk format. Version 2 is the shape of `Event`; later fields are optional. Version 1, which has no
`version`, had `behind` and `refused` for `lag` and `quarantined`, and fewer fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

VERSION = 2
LOG_ROTATED = "events rotated"  # begins a file; the last event of the run and of each step is repeated after it
RUN_ENDED = ("run ended", "run stopped", "run failed")


@dataclass(frozen=True)
class Event:
    """One batch of one step, or the start, end, failure or warning of a run or a step (`what`)."""

    what: str
    at: str
    pipeline: str
    run: str
    process: int
    step: str = ""
    message: str = ""
    version: int = VERSION
    release: str = ""  # empty for a run from the working tree
    query: str = ""  # the query's id, which stays with its checkpoint
    query_run: str = ""
    batch: int = -1
    milliseconds: int = 0
    phases: dict[str, int] = field(default_factory=dict)  # milliseconds of each, by Spark's names
    rows: int = 0  # read
    rows_per_second: float = 0.0
    sources: tuple[dict[str, Any], ...] = ()  # name, rows, start and end offset, lag and its unit
    lag: dict[str, int] = field(default_factory=dict)  # by unit: files, records, commits; empty if unknown
    watermark: str | None = None
    event_time: dict[str, dict[str, str]] = field(default_factory=dict)  # oldest and newest, by input
    late: int = 0
    late_unit: str = ""  # rows, or groups behind an aggregation
    duplicates: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)  # by rule, as are the next two
    dropped: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_rows_removed: int = 0
    state_bytes: int = 0
    tables: dict[str, dict[str, int]] = field(default_factory=dict)  # version, rows, files, bytes of each table written


FIELDS = {each.name for each in fields(Event)}  # later versions may have more


def events_file(directory: Path, pipeline: str) -> Path:
    """Return the file of a pipeline's events in an environment's directory."""
    return directory / "events" / f"{pipeline}.jsonl"


def alive_file(directory: Path, pipeline: str, run: str) -> Path:
    """Return the file that a run keeps locked while it lives."""
    return directory / "events" / f"{pipeline}.{run}.alive"


def read_events(directory: Path, pipeline: str) -> Iterator[Event]:
    """Yield all recorded events of a pipeline, oldest first."""
    newest = events_file(directory, pipeline)
    for file in (newest.with_suffix(".1.jsonl"), newest):
        if not file.exists():
            continue
        with file.open() as lines:
            for line in lines:
                with suppress(json.JSONDecodeError):  # a line that a killed process did not finish
                    yield _event(json.loads(line))


def format_batch(event: Event) -> str:
    """Return a batch as one line of text."""
    parts = [event.step, f"batch {event.batch}", f"{event.rows:,} rows", format_duration(event.milliseconds)]
    if any(event.lag.values()):
        parts.append(f"lag {format_lag(event.lag)}")
    if event.state_rows:
        parts.append(f"state {event.state_rows:,} rows")
    for count, label in (
        (event.late, f"late {event.late_unit}".rstrip()),
        (event.duplicates, "duplicates"),
        (sum(event.quarantined.values()), "quarantined"),
        (sum(event.dropped.values()), "dropped"),
        (sum(event.warned.values()), "warned"),
    ):
        if count:
            parts.append(f"{count:,} {label}")
    return "  ".join(parts)


def format_duration(milliseconds: int) -> str:
    """Return a duration as text, like "40 ms" or "1.4 s"."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def format_lag(lag: Mapping[str, int]) -> str:
    """Return a lag as text, like "15 files"; empty if it is unknown."""
    return ", ".join(f"{count:,} {_singular(unit) if count == 1 else unit}".rstrip() for unit, count in lag.items())


def _singular(unit: str) -> str:
    return unit.removesuffix("s")


def _event(record: dict[str, Any]) -> Event:
    """Return the event of a record of any version."""
    if "version" not in record:
        behind = record.pop("behind", None)
        record |= {"version": 1, "quarantined": record.pop("refused", {})}
        record["lag"] = {} if behind is None else {"": behind}
        if record["what"] == "events set aside":
            record["what"] = LOG_ROTATED
    record["sources"] = tuple(record.get("sources", ()))  # JSON has lists only
    return Event(**{key: value for key, value in record.items() if key in FIELDS})
