"""Sums up the recorded events of a pipeline: the last run, and what each step has done."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.progress import Event, read_events


@dataclass(frozen=True)
class StepStatus:
    """What one step has done, over all its recorded runs."""

    step: str
    batches: int
    rows: int
    at: str
    watermark: str | None
    behind: int | None
    state_rows: int
    late: int
    duplicates: int
    refused: dict[str, int]
    failure: str


@dataclass(frozen=True)
class Status:
    """A pipeline's state: its last run in words, and its steps."""

    run: str
    steps: list[StepStatus]


def status_of(directory: Path, pipeline: str, steps: Sequence[str]) -> Status:
    """Reads the events; works whether the pipeline runs or not."""
    events = list(read_events(directory, pipeline))
    runs = [event for event in events if event.what.startswith("run ")]
    return Status(_in_words(runs[-1]) if runs else "never run", [_step(name, events) for name in steps])


def _in_words(last: Event) -> str:
    if last.what != "run started":
        cause = f": {last.message}" if last.message else ""
        return f"{last.what} at {last.at}{cause}"
    if _alive(last.process):
        return f"running since {last.at}, process {last.process}"
    return f"ended without a word after {last.at}: its process was killed"


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _step(name: str, events: Sequence[Event]) -> StepStatus:
    own = [event for event in events if event.step == name]
    batches = {(event.batch): event for event in own if event.what == "batch"}
    last = next((event for event in reversed(own) if event.what == "batch"), None)
    refused: Counter[str] = Counter()
    for event in batches.values():
        refused.update(event.refused)
    failures = [event.message for event in own if event.what == "step failed"]
    return StepStatus(
        name,
        len(batches),
        sum(event.rows for event in batches.values()),
        last.at if last else "",
        last.watermark if last else None,
        last.behind if last else None,
        last.state_rows if last else 0,
        sum(event.late for event in batches.values()),
        sum(event.duplicates for event in batches.values()),
        dict(refused),
        failures[-1] if failures else "",
    )
