"""What Headrace records about a generation beside Spark's own files: `signature.json` in the generation's directory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.checkpoints.checkpoint_files import CheckpointFiles

FILE = "signature.json"
FORMAT = 1


@dataclass(frozen=True)
class StepRecord:
    """The state of a step when its generation was last started."""

    bundle: str = ""
    pipeline: str = ""
    step: str = ""
    release: str = ""
    started_at: str = ""
    tables: dict[str, str] = field(default_factory=dict)  # by name, the ids of the tables that the step writes
    # By input: the kind and location of its source, or the schema of the table that it streams.
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    signature: dict[str, Any] = field(default_factory=dict)  # what its query computes; empty if unknown
    # The changes with which the step has started: the time, the release and the sentence of each.
    changes: list[dict[str, str]] = field(default_factory=list)


def read_record(files: CheckpointFiles, generation: int) -> StepRecord | None:
    """Return the record of a generation; None if it is missing, damaged or written by a newer version of Headrace."""
    try:
        values: dict[str, Any] = json.loads(files.read(f"{generation}/{FILE}") or b"")
        if values.pop("format") != FORMAT:
            return None
        return StepRecord(**values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def write_record(files: CheckpointFiles, generation: int, record: StepRecord) -> None:
    """Store the record of a generation."""
    content = json.dumps({"format": FORMAT, **asdict(record)}, indent=2)
    files.write(f"{generation}/{FILE}", f"{content}\n".encode())
