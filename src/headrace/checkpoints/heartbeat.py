"""Heartbeats: small files beside the checkpoints in which a run of a release reports how its steps are.

A step's heartbeat is written when its query starts, after batches, when it finds nothing to read, and at its end. In
between, it is written every INTERVAL_S, so an old heartbeat without an end means that the run's process has died.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

from headrace.checkpoints.layout import step_directory
from headrace.config.models import Environment, local_path

VERSION = 1  # of the format of the file
INTERVAL_S = 10.0


@dataclass(frozen=True)
class Heartbeat:
    """What a run has done with one of its steps. Times are in ISO format; they are empty if something has not happened.

    Batches and rows are those of this run.
    """

    pipeline: str
    step: str
    release: str
    run: str  # the id of the run in its events
    started: str  # when the run began with the step
    at: str = ""  # when the file was written
    batch: int = -1  # the last batch that was committed; -1: none yet
    rows: int = 0  # rows read
    first_batch_at: str = ""
    last_batch_at: str = ""
    idle_since: str = ""  # since when the step has found nothing to read; empty if it has read something since
    ended: str = ""  # when the run ended with the step
    failure: str = ""  # why the step or the run failed
    last_failure: str = ""  # why an earlier run of the same release failed

    @property
    def has_batch(self) -> bool:
        """Whether this run has committed a batch of the step."""
        return self.batch >= 0

    def to_json(self) -> str:
        """Return the content of the file."""
        return json.dumps({"version": VERSION, **asdict(self)}) + "\n"

    @classmethod
    def from_json(cls, text: bytes | str) -> Heartbeat:
        """Parse the content of a file; raise ValueError if it is not a heartbeat. Later versions may have more keys."""
        content = json.loads(text)
        try:
            return cls(**{field.name: content[field.name] for field in fields(cls) if field.name in content})
        except TypeError as error:
            raise ValueError(f"not a heartbeat: {error}") from error


def heartbeat_file(environment: Environment, pipeline: str, step: str) -> str:
    """Return the path of a step's heartbeat; empty if checkpoints are in an object store."""
    directory = local_path(step_directory(environment, pipeline, step))
    return f"{directory}/heartbeat.json" if directory else ""


def now() -> str:
    """Return the current time in the format of heartbeats."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two times of heartbeats; 0 if one is empty."""
    if not earlier or not later:
        return 0.0
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
