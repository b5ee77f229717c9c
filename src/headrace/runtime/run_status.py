"""Summarise the recorded events of a pipeline: its last run, and what each step has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.liveness import is_locked, process_exists
from headrace.runtime.events import Event, alive_file, read_events


@dataclass(frozen=True)
class StepStatus:
    """What one step has done, over all its recorded runs."""

    step: str
    batches: int
    rows: int
    at: str  # of its last batch, as are those up to state_rows
    rows_per_second: float
    milliseconds: int
    watermark: str | None
    behind: int | None
    state_rows: int
    late: int
    duplicates: int
    refused: dict[str, int]
    dropped: dict[str, int]
    warned: dict[str, int]
    failure: str  # unless a batch has been done since


@dataclass(frozen=True)
class RunStatus:
    """A pipeline's state: its last run in words, and its steps."""

    run: str
    is_running: bool
    since: str  # what the steps have done is counted from there on: the oldest events go
    steps: list[StepStatus]


def status_of(directory: Path, pipeline: str, steps: Sequence[str]) -> RunStatus:
    """Reads the events; works whether the pipeline runs or not."""
    events = list(read_events(directory, pipeline))
    runs: dict[str, Event] = {}  # the last event of each, the latest at the end
    for event in events:
        if event.what.startswith("run "):
            runs.pop(event.run, None)
            runs[event.run] = event
    going = [last for last in runs.values() if last.what == "run started" and _is_running(last, directory)]
    told = next(iter([*going[-1:], *list(runs.values())[-1:]]), None)
    run = _describe(told, is_going=bool(going)) if told else "never run"
    return RunStatus(run, bool(going), events[0].at if events else "", [_step_status(name, events) for name in steps])


def _is_running(run: Event, directory: Path) -> bool:
    """By the file that it holds: in a container its process has a number that says nothing outside, or is another's."""
    file = alive_file(directory, run.pipeline, run.run)
    return is_locked(file) if file.exists() else process_exists(run.process)


def _describe(last: Event, *, is_going: bool) -> str:
    if last.what != "run started":
        cause = f": {last.message}" if last.message else ""
        return f"{last.what} at {last.at}{cause}"
    if is_going:
        return f"running since {last.at}, process {last.process}"
    return f"ended without a word after {last.at}: its process was killed"


def _step_status(name: str, events: Sequence[Event]) -> StepStatus:
    own = [event for event in events if event.step == name and event.what in ("batch", "step failed")]
    batches = {event.batch: event for event in own if event.what == "batch"}
    last = next((event for event in reversed(own) if event.what == "batch"), None)

    def total(kind: str) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for event in batches.values():
            counts.update(getattr(event, kind))
        return dict(counts)

    return StepStatus(
        name,
        len(batches),
        sum(event.rows for event in batches.values()),
        last.at if last else "",
        last.rows_per_second if last else 0.0,
        last.milliseconds if last else 0,
        last.watermark if last else None,
        last.behind if last else None,
        last.state_rows if last else 0,
        sum(event.late for event in batches.values()),
        sum(event.duplicates for event in batches.values()),
        total("refused"),
        total("dropped"),
        total("warned"),
        own[-1].message if own and own[-1].what == "step failed" else "",
    )
