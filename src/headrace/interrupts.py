"""Signal handling: Ctrl-C, SIGTERM and SIGHUP end a command without a traceback and without orphaned processes.

This also holds while modules are imported, so this module is imported first and imports almost nothing itself.
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

# Under nohup SIGHUP is ignored, and stays ignored.
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
    """Delay signals until the end of the block."""
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


@contextmanager
def unmasked() -> Iterator[None]:
    """Raise an interrupt that an OSError hides.

    A signal that arrives during a call of the JVM raises Interrupted in py4j, which then closes its connections. If one
    of them was closed by the JVM before, py4j raises an OSError instead (0.10.9.9).
    """
    try:
        yield
    except OSError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


def exit_on_signal() -> None:
    """Exit immediately on a signal. Used while modules are imported, when there is nothing to clean up."""
    handle(lambda number, frame: os._exit(128 + number))


def call(command: Callable[[], Any]) -> NoReturn:
    """Call the command and exit. A signal interrupts it; child processes that still run are killed."""
    from headrace import child_processes

    handle(lambda number, frame: interrupt(number))
    code: Any = 1
    try:
        command()
        code = 0
    except SystemExit as ended:
        code = ended.code
    except Interrupted:
        pass  # raised outside of the command's own error handling
    finally:
        handle(signal.SIG_IGN)
        child_processes.kill_children()
    if not _received:
        sys.exit(code)
    if code != 0:
        code = 128 + _received[0]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reading end of a pipe may be closed
            stream.flush()
    os._exit(code)  # threads of py4j may still wait for the JVM
