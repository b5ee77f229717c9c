"""Requests to stop a run between two batches. A request is a file in the checkpoint directory, which runs poll.

A run obeys every request that is written after the run has begun to poll, regardless of clocks. It obeys a request that
was there before only if the request has not expired. When a request expires, the
process that wrote it stops waiting.
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
    """An event that is set when the run should stop between two batches."""

    signal: int | None = None  # the number of the signal that set the event; None for a stop request


def request_file(environment: Environment, pipeline: str) -> str:
    """Return the path of the request file that a pipeline's runs poll; empty if checkpoints are in an object store."""
    checkpoints = local_path(environment.checkpoints).rstrip("/")
    return f"{checkpoints}/{pipeline}/stop.json" if checkpoints else ""


def new_request(by: str, *, within: float) -> bytes:
    """Return the content of a unique request that expires after `within` seconds; `by` names the requester."""
    content = {"id": uuid.uuid4().hex, "by": by, "until": time.time() + within}
    return (json.dumps(content) + "\n").encode()


def write_request(file: Path, by: str, *, within: float) -> None:
    """Write a request atomically. See `new_request` for the arguments."""
    file.parent.mkdir(parents=True, exist_ok=True)  # a run that is just starting may not have created the directory
    temporary = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    temporary.write_bytes(new_request(by, within=within))
    temporary.replace(file)


@contextmanager
def watch_requests(environment: Environment, pipeline: str, stop: Stop) -> Iterator[None]:
    """Poll for requests in a thread during this block, and set `stop` when there is one that the run has to obey.

    Do nothing if the checkpoints are in an object store.
    """
    path = request_file(environment, pipeline)
    if not path:
        yield
        return
    initial, finished = _read(Path(path)), threading.Event()
    if _is_pending(initial):
        stop.set()

    def poll() -> None:
        while not finished.wait(POLL_INTERVAL_S):
            is_new_request = _read(Path(path)) not in (initial, b"")
            if is_new_request:
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
    """Return whether the content of a request file is a request that has not expired.

    Requests that older versions of Headrace wrote have no time of expiry and count as expired.
    """
    try:
        return time.time() < float(json.loads(content)["until"])
    except (ValueError, KeyError, TypeError):
        return False


def _read(file: Path) -> bytes:
    """Return the content of the file; empty if it does not exist or cannot be read."""
    with suppress(OSError):
        return file.read_bytes()
    return b""
