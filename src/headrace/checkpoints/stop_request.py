"""Requests to stop a run between two batches: a file in the checkpoint directory, which runs poll.

A run obeys every request that is written after its start, regardless of clocks. It obeys an older request, such as one
written while it was starting, only until that request expires: the requester then stops waiting and deletes it.
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

    signal: int | None = None  # the signal that requested it, if one did


def request_file(environment: Environment, pipeline: str) -> str:
    """Return the path that a pipeline's runs poll; empty if the checkpoints are not on a file system."""
    checkpoints = local_path(environment.checkpoints).rstrip("/")
    return f"{checkpoints}/{pipeline}/stop.json" if checkpoints else ""


def new_request(by: str, *, within: float) -> bytes:
    """Return the content of a unique request that expires after `within` seconds."""
    content = {"id": uuid.uuid4().hex, "by": by, "until": time.time() + within}
    return (json.dumps(content) + "\n").encode()


def write_request(file: Path, by: str, *, within: float) -> None:
    """Write a request that expires after `within` seconds, atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)  # a run that is just starting has not created it yet
    temporary = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    temporary.write_bytes(new_request(by, within=within))
    temporary.replace(file)


@contextmanager
def watch_requests(environment: Environment, pipeline: str, stop: Stop) -> Iterator[None]:
    """Poll for requests in a thread, and set the event when there is one."""
    path = request_file(environment, pipeline)
    if not path:
        yield
        return
    before, finished = _read(Path(path)), threading.Event()
    if _is_pending(before):
        stop.set()

    def poll() -> None:
        while not finished.wait(POLL_INTERVAL_S):
            if _read(Path(path)) not in (before, b""):
                stop.set()
                return

    thread = threading.Thread(target=poll, name="stop requests", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _is_pending(content: bytes) -> bool:
    """Return whether the request has not expired. Requests of older versions have no expiry: return False."""
    try:
        return time.time() < float(json.loads(content)["until"])
    except (ValueError, KeyError, TypeError):
        return False


def _read(file: Path) -> bytes:
    with suppress(OSError):
        return file.read_bytes()
    return b""
