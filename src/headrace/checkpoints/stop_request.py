"""Requests to stop a run between two batches: a file beside the checkpoints, which runs poll.

A run honours a request that comes after its start, whatever the clocks say. A request that is there before, as one made
while the run was starting, counts for as long as its requester waits, who then withdraws it.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.config.models import Environment, local_path

POLL_INTERVAL_S = 1.0


class Stop(threading.Event):
    """Set when the run should stop between two batches."""

    signal: int | None = None  # the one that asked for it


def request_file(environment: Environment, pipeline: str) -> str:
    """Return the file that a pipeline's runs poll; empty where no file can be read, as in object stores."""
    checkpoints = local_path(environment.checkpoints).rstrip("/")
    return f"{checkpoints}/{pipeline}/stop.json" if checkpoints else ""


def new_request(by: str, *, within: float) -> bytes:
    """Return a new request, which its requester withdraws within so many seconds; no two are the same."""
    content = {"id": uuid.uuid4().hex, "by": by, "until": time.time() + within}
    return (json.dumps(content) + "\n").encode()


def write_request(file: Path, by: str, *, within: float) -> None:
    """Write a request."""
    file.parent.mkdir(parents=True, exist_ok=True)  # the run may be so young that it has written nothing
    beside = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    beside.write_bytes(new_request(by, within=within))
    beside.replace(file)


@contextmanager
def watch_requests(environment: Environment, pipeline: str, stop: Stop) -> Iterator[None]:
    """Set the event when there is a request."""
    path = request_file(environment, pipeline)
    if not path:
        yield
        return
    before, over = _read(Path(path)), threading.Event()
    if _is_pending(before):
        stop.set()

    def poll() -> None:
        while not over.wait(POLL_INTERVAL_S):
            if _read(Path(path)) not in (before, b""):
                stop.set()
                return

    thread = threading.Thread(target=poll, name="stop requests", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _is_pending(content: bytes) -> bool:
    """Return whether the requester still waits; false for requests of versions that did not say until when."""
    try:
        return time.time() < float(json.loads(content)["until"])
    except (ValueError, KeyError, TypeError):
        return False


def _read(file: Path) -> bytes:
    with suppress(OSError):
        return file.read_bytes()
    return b""
