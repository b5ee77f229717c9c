"""Summarise the recorded events of a pipeline: its last run, and the totals of each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.liveness import is_locked, process_exists
from headrace.runtime.events import Event, alive_file, read_events


@dataclass(frozen=True)
class StepStatus:
    """Totals of one step over all its recorded batches, and facts about its last batch."""

    name: str
    batches: int
    rows: int
    at: str  # time of the last batch, empty without one; the fields from here to state_rows describe the last batch
    rows_per_second: float
    milliseconds: int
    watermark: str | None
    lag: dict[str, int]
    state_rows: int
    late: int
    late_unit: str  # "rows", or "groups" after an aggregation; empty if unknown
    duplicates: int
    quarantined: dict[str, int]
    dropped: dict[str, int]
    warned: dict[str, int]
    failure: str  # message of the last failure; empty if the step has completed a batch since then


@dataclass(frozen=True)
class RunStatus:
    """A pipeline's state: a description of its last run, and its steps."""

    description: str  # like "run ended at …" or "running since …, process 4711"
    is_running: bool
    since: str  # time of the oldest recorded event, from which the totals count; empty without events
    steps: list[StepStatus]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of `headrace status -o json`, with the key "run" for `description`, "step" for `name`.

        The keys are older than the names of the fields. Users' scripts read them, so they stay.
        """
        fields = asdict(self)
        steps = [{"step": step.pop("name"), **step} for step in fields["steps"]]
        return {"run": fields["description"], "is_running": self.is_running, "since": self.since, "steps": steps}


def status_of(directory: Path, pipeline: str, steps: Sequence[str]) -> RunStatus:
    """Return the status of a pipeline, whether or not it is running."""
    events = list(read_events(directory, pipeline))
    last_events: dict[str, Event] = {}  # by run, its last start or end event; in the order of these events
    for event in events:
        if event.what.startswith("run "):
            last_events.pop(event.run, None)
            last_events[event.run] = event
    running = [event for event in last_events.values() if event.what == "run started" and _is_alive(event, directory)]
    shown = running[-1] if running else next(reversed(last_events.values()), None)
    return RunStatus(
        description=_describe(shown, is_running=bool(running)) if shown else "never run",
        is_running=bool(running),
        since=events[0].at if events else "",
        steps=[_step_status(name, events) for name in steps],
    )


def _is_alive(started: Event, directory: Path) -> bool:
    """Return whether the process of a started run is alive: then it has locked the run's file.

    On a file system without locks, the file does not exist. Then return whether there is a process with the id of the
    run's process. This is less reliable: outside of the run's container, no process or another one may have this id.
    """
    file = alive_file(directory, started.pipeline, started.run)
    return is_locked(file) if file.exists() else process_exists(started.process)


def _describe(last: Event, *, is_running: bool) -> str:
    """Return the description of a run, whose last event is `last`. See `RunStatus.description`."""
    if last.what != "run started":
        cause = f": {last.message}" if last.message else ""
        return f"{last.what} at {last.at}{cause}"
    if is_running:
        return f"running since {last.at}, process {last.process}"
    return f"the process died; the run had started at {last.at}"


def _step_status(name: str, events: Sequence[Event]) -> StepStatus:
    """Return the status of a step from the events of its pipeline."""
    own = [event for event in events if event.step == name and event.what in ("batch", "step failed")]
    # A repeated batch counts once. After a reset, the step has another query, which counts its batches from 0.
    batches = {(event.query, event.batch): event for event in own if event.what == "batch"}
    last = next((event for event in reversed(own) if event.what == "batch"), None)

    def total(outcome: str) -> dict[str, int]:
        """Return the number of rows per rule, over all batches; `outcome` is the name of a field."""
        counts: Counter[str] = Counter()
        for event in batches.values():
            counts.update(getattr(event, outcome))
        return dict(counts)

    return StepStatus(
        name=name,
        batches=len(batches),
        rows=sum(event.rows for event in batches.values()),
        at=last.at if last else "",
        rows_per_second=last.rows_per_second if last else 0.0,
        milliseconds=last.milliseconds if last else 0,
        watermark=last.watermark if last else None,
        lag=last.lag if last else {},
        state_rows=last.state_rows if last else 0,
        late=sum(event.late for event in batches.values()),
        late_unit=next((event.late_unit for event in reversed(own) if event.late), "rows"),
        duplicates=sum(event.duplicates for event in batches.values()),
        quarantined=total("quarantined"),
        dropped=total("dropped"),
        warned=total("warned"),
        failure=own[-1].message if own and own[-1].what == "step failed" else "",
    )
