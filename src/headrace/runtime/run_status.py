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
    at: str  # of its last batch, as are the fields up to state_rows
    rows_per_second: float
    milliseconds: int
    watermark: str | None
    lag: dict[str, int]
    state_rows: int
    late: int
    duplicates: int
    quarantined: dict[str, int]
    dropped: dict[str, int]
    warned: dict[str, int]
    failure: str  # empty if a batch has been completed since


@dataclass(frozen=True)
class RunStatus:
    """A pipeline's state: its last run as text, and its steps."""

    run: str
    is_running: bool
    since: str  # of the oldest event that is kept; steps are summed up from there
    steps: list[StepStatus]


def status_of(directory: Path, pipeline: str, steps: Sequence[str]) -> RunStatus:
    """Return the status of a pipeline, whether it runs or not."""
    events = list(read_events(directory, pipeline))
    runs: dict[str, Event] = {}  # the last event of each, the latest run at the end
    for event in events:
        if event.what.startswith("run "):
            runs.pop(event.run, None)
            runs[event.run] = event
    running = [last for last in runs.values() if last.what == "run started" and _is_alive(last, directory)]
    latest = next(iter([*running[-1:], *list(runs.values())[-1:]]), None)
    run = _describe(latest, is_running=bool(running)) if latest else "never run"
    return RunStatus(run, bool(running), events[0].at if events else "", [_step_status(name, events) for name in steps])


def _is_alive(run: Event, directory: Path) -> bool:
    """Return whether the process of a run lives.

    The lock on its file decides: outside of a container, a process number from inside means nothing, or another one.
    """
    file = alive_file(directory, run.pipeline, run.run)
    return is_locked(file) if file.exists() else process_exists(run.process)


def _describe(last: Event, *, is_running: bool) -> str:
    if last.what != "run started":
        cause = f": {last.message}" if last.message else ""
        return f"{last.what} at {last.at}{cause}"
    if is_running:
        return f"running since {last.at}, process {last.process}"
    return f"the process died; the run had started at {last.at}"


def _step_status(name: str, events: Sequence[Event]) -> StepStatus:
    own = [event for event in events if event.step == name and event.what in ("batch", "step failed")]
    batches = {event.batch: event for event in own if event.what == "batch"}
    last = next((event for event in reversed(own) if event.what == "batch"), None)

    def total(outcome: str) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for event in batches.values():
            counts.update(getattr(event, outcome))
        return dict(counts)

    return StepStatus(
        step=name,
        batches=len(batches),
        rows=sum(event.rows for event in batches.values()),
        at=last.at if last else "",
        rows_per_second=last.rows_per_second if last else 0.0,
        milliseconds=last.milliseconds if last else 0,
        watermark=last.watermark if last else None,
        lag=last.lag if last else {},
        state_rows=last.state_rows if last else 0,
        late=sum(event.late for event in batches.values()),
        duplicates=sum(event.duplicates for event in batches.values()),
        quarantined=total("quarantined"),
        dropped=total("dropped"),
        warned=total("warned"),
        failure=own[-1].message if own and own[-1].what == "step failed" else "",
    )
