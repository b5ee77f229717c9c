"""Events of a run: each batch, and the start, end, failure and warnings of runs and steps; one JSON line each.

The files are an on-disk format. Version 2 has the fields of `Event`; fields that are added later are optional.
Version 1 has no key `version`, has `behind` and `refused` instead of `lag` and `quarantined`, and lacks other fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

VERSION = 2
LOG_ROTATED = "events rotated"  # the first event of a new file; the last events of the run and of each step follow it
RUN_ENDED = ("run ended", "run stopped", "run failed")


@dataclass(frozen=True)
class Event:
    """One batch of one step, or the start, end, failure or warning of a run or a step."""

    what: str
    """`batch`, or the start, end, failure or warning of a run or a step, such as `run started` or `step failed`."""
    at: str
    """The time, in ISO format."""
    pipeline: str
    """The pipeline."""
    run: str
    """The id of the run."""
    process: int
    """The process id of the run."""
    step: str = ""
    """The step; empty for an event of the whole run."""
    message: str = ""
    """The error or warning; empty for a batch."""
    version: int = VERSION
    """The version of this format."""
    release: str = ""
    """The release; empty for a run from the working tree."""
    query: str = ""
    """Spark's id of the query, which is the same in all runs with the same checkpoint."""
    query_run: str = ""
    """Spark's id of this run of the query."""
    batch: int = -1
    """The number of the batch; -1 for other events."""
    milliseconds: int = 0
    """The duration of the batch."""
    phases: dict[str, int] = field(default_factory=dict)
    """The duration of each of Spark's phases, in milliseconds."""
    rows: int = 0
    """How many rows the batch read."""
    rows_per_second: float = 0.0
    """How many rows the batch read per second."""
    sources: tuple[dict[str, Any], ...] = ()
    """For each source: its name, rows, start and end offset, lag and the unit of its lag."""
    lag: dict[str, int] = field(default_factory=dict)
    """The sum of the known lags, by unit: files, records, commits."""
    watermark: str | None = None
    """The watermark."""
    event_time: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each input with a watermark: the oldest and the newest event time of the batch."""
    late: int = 0
    """How many late rows, or groups of late rows, Spark dropped."""
    late_unit: str = ""
    """The unit of `late`: `rows`, or `groups` after an aggregation; empty if `late` is 0."""
    duplicates: int = 0
    """How many rows the built-in deduplication removed."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """How many rows were written to the quarantine table, by the rule that they failed."""
    dropped: dict[str, int] = field(default_factory=dict)
    """How many rows were dropped, by the rule that they failed."""
    warned: dict[str, int] = field(default_factory=dict)
    """How many rows failed a rule and were written all the same, by the rule."""
    state_rows: int = 0
    """The number of rows in the state after the batch."""
    state_rows_removed: int = 0
    """How many rows the batch removed from the state."""
    state_bytes: int = 0
    """The size of the state after the batch."""
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each table on this machine's disk: the version, rows, files and bytes of the batch's commit."""


FIELDS = {each.name for each in fields(Event)}  # other keys of a record are ignored: a later version wrote them


def events_file(directory: Path, pipeline: str) -> Path:
    """Return the file of a pipeline's events in an environment's directory."""
    return directory / "events" / f"{pipeline}.jsonl"


def alive_file(directory: Path, pipeline: str, run: str) -> Path:
    """Return the file that the run's process keeps locked while it is alive."""
    return directory / "events" / f"{pipeline}.{run}.alive"


def read_events(directory: Path, pipeline: str) -> Iterator[Event]:
    """Yield all recorded events of a pipeline, oldest first."""
    newest = events_file(directory, pipeline)
    for file in (newest.with_suffix(".1.jsonl"), newest):
        if not file.exists():
            continue
        with file.open() as lines:
            for line in lines:
                with suppress(json.JSONDecodeError):  # a killed process may leave an unfinished line
                    yield _event(json.loads(line))


def format_warning(event: Event) -> str:
    """Return a warning as text, with the step that it concerns, if it concerns only one."""
    return f"{event.step}: {event.message}" if event.step else event.message


def format_batch(event: Event) -> str:
    """Return the event of a batch as one line of text."""
    parts = [event.step, f"batch {event.batch}", f"{event.rows:,} rows", format_duration(event.milliseconds)]
    if any(event.lag.values()):
        parts.append(f"lag {format_lag(event.lag)}")
    if event.state_rows:
        parts.append(f"state {event.state_rows:,} rows")
    for count, label in (
        (event.late, late_label(event.late_unit)),
        (event.duplicates, "duplicates"),
        (sum(event.quarantined.values()), "quarantined"),
        (sum(event.dropped.values()), "dropped"),
        (sum(event.warned.values()), "warned"),
    ):
        if count:
            parts.append(f"{count:,} {label}")
    return "  ".join(parts)


def late_label(unit: str) -> str:
    """Return the label of a count of late rows or groups, like "late rows"; "late" if the unit is unknown."""
    return f"late {unit}".rstrip()


def format_duration(milliseconds: int) -> str:
    """Return a duration as text, like "40 ms" or "1.4 s"."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def format_lag(lag: Mapping[str, int]) -> str:
    """Return a lag as text, like "15 files"; empty if it is unknown."""
    return ", ".join(f"{count:,} {_singular(unit) if count == 1 else unit}".rstrip() for unit, count in lag.items())


def _singular(unit: str) -> str:
    return unit.removesuffix("s")


def _event(record: dict[str, Any]) -> Event:
    """Return the event for a JSON record of any version."""
    if "version" not in record:
        behind = record.pop("behind", None)
        record |= {"version": 1, "quarantined": record.pop("refused", {})}
        record["lag"] = {} if behind is None else {"": behind}
        if record["what"] == "events set aside":  # the name of LOG_ROTATED in version 1
            record["what"] = LOG_ROTATED
    record["sources"] = tuple(record.get("sources", ()))  # JSON has no tuples
    return Event(**{key: value for key, value in record.items() if key in FIELDS})
