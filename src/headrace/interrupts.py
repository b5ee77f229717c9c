"""Signals: from the first import on, Ctrl-C, SIGTERM and SIGHUP end a command without a traceback or a process left.

Imported before everything else, so it imports next to nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

# What nohup has switched off stays off.
HANGUP = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)
Handler = Callable[[int, FrameType | None], Any] | int | None
_received: list[int] = []


class Interrupted(KeyboardInterrupt):
    """A signal ends the command."""


def interrupt(number: int, message: str = "") -> NoReturn:
    """Raise Interrupted; the exit code will be 128 + the signal's number."""
    _received.append(number)
    raise Interrupted(message)


def handle(handler: Handler) -> dict[int, Handler]:
    """Install a handler for all these signals. Return the previous ones, for `restore`."""
    return {number: signal.signal(number, handler) for number in SIGNALS}


def restore(handlers: dict[int, Handler]) -> None:
    """Install the handlers that `handle` returned."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals that come meanwhile arrive afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers = handle(lambda number, frame: received.append(number))
    try:
        yield
    finally:
        restore(handlers)
        for number in received:
            signal.raise_signal(number)


def end_at_once() -> None:
    """End the process at a signal, for as long as there is nothing to clean up: while modules are imported."""
    handle(lambda number, frame: os._exit(128 + number))


def call(command: Callable[[], Any]) -> NoReturn:
    """Call the command and exit. A signal ends it where it is; child processes that are left are killed."""
    from headrace import child_processes

    handle(lambda number, frame: interrupt(number))
    code: Any = 1
    try:
        command()
        code = 0
    except SystemExit as ended:
        code = ended.code
    except Interrupted:
        pass  # outside of the command's own handling
    finally:
        handle(signal.SIG_IGN)
        child_processes.kill_children()
    if not _received:
        sys.exit(code)
    if code != 0:
        code = 128 + _received[0]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # its reader may be gone
            stream.flush()
    os._exit(code)  # threads of py4j may still wait for the JVM
