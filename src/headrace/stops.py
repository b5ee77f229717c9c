"""Asks a run to stop at its batches' end, by a file beside the checkpoints, which the run looks at.

A run minds only a request that was left after its start: nobody has to take an old one away.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.config.models import Environment, on_disk

LOOK = 1.0  # seconds between two looks


def request_file(environment: Environment, pipeline: str) -> str:
    """Where a pipeline's runs look for a request; empty where no file can be read, as in object stores."""
    checkpoints = on_disk(environment.checkpoints).rstrip("/")
    return f"{checkpoints}/{pipeline}/stop.json" if checkpoints else ""


def request(by: str) -> bytes:
    """A new request; no two are the same."""
    return (json.dumps({"id": uuid.uuid4().hex, "by": by}) + "\n").encode()


def ask(file: Path, by: str) -> None:
    """Leaves a request."""
    file.parent.mkdir(parents=True, exist_ok=True)  # the run may be so young that it has written nothing
    beside = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    beside.write_bytes(request(by))
    beside.replace(file)


@contextmanager
def watched(environment: Environment, pipeline: str, stop: threading.Event) -> Iterator[None]:
    """Sets the event when a request comes."""
    path = request_file(environment, pipeline)
    if not path:
        yield
        return
    before, over = _read(Path(path)), threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            if _read(Path(path)) not in (before, b""):
                stop.set()
                return

    thread = threading.Thread(target=look, name="stop requests", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _read(file: Path) -> bytes:
    with suppress(OSError):
        return file.read_bytes()
    return b""
