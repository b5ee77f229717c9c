"""Signal handling: Ctrl-C, SIGTERM and SIGHUP end a command without a traceback and without orphaned processes.

Signals must also be handled while other modules are imported. Therefore this module is imported first, and imports
almost nothing itself.
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

# nohup starts a process with SIGHUP ignored. Installing a handler would undo that, so SIGHUP is not handled then.
HANGUP = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)
Handler = Callable[[int, FrameType | None], Any] | int | None
_received_signals: list[int] = []


class Interrupted(KeyboardInterrupt):
    """Raised when a signal ends the command. The message, if any, is shown to the user."""


def interrupt(signum: int, message: str = "") -> NoReturn:
    """Record the signal and raise Interrupted.

    `call` then exits with 128 + the number of the first recorded signal, unless the command catches Interrupted and
    succeeds.
    """
    _received_signals.append(signum)
    raise Interrupted(message)


def handle(handler: Handler) -> dict[int, Handler]:
    """Install a handler for all SIGNALS. Return the previous handlers, which `restore` installs again."""
    return {signum: signal.signal(signum, handler) for signum in SIGNALS}


def restore(handlers: dict[int, Handler]) -> None:
    """Install the handlers that `handle` returned."""
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Delay signals until the end of the `with` block. Outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():  # Python handles signals only in the main thread
        yield
        return
    delayed: list[int] = []
    handlers = handle(lambda signum, frame: delayed.append(signum))
    try:
        yield
    finally:
        restore(handlers)
        for signum in delayed:
            signal.raise_signal(signum)


@contextmanager
def unmasked() -> Iterator[None]:
    """Raise an interrupt that an OSError replaced; do not change other errors.

    A signal that arrives during a call of the JVM raises Interrupted in py4j, which then closes its connections. If the
    JVM has already closed one of them, py4j raises an OSError instead (py4j 0.10.9.9).
    """
    try:
        yield
    except OSError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


def exit_on_signal() -> None:
    """From now on, exit immediately on a signal. Used while modules are imported, when there is nothing to clean up."""
    handle(lambda signum, frame: os._exit(128 + signum))


def call(command: Callable[[], Any]) -> NoReturn:
    """Call the command, kill the child processes that still run, and exit. A signal raises Interrupted in the command.

    The exit code is 0 if the command returns, and its own code if it raises SystemExit. After an interrupt, any code
    but 0 becomes 128 + the signal's number. Other exceptions of the command are raised.
    """
    from headrace import child_processes

    handle(lambda signum, frame: interrupt(signum))
    exit_code: Any = 1
    try:
        command()
        exit_code = 0
    except SystemExit as system_exit:
        exit_code = system_exit.code
    except Interrupted:
        pass  # the signal arrived outside of the command's own error handling
    finally:
        handle(signal.SIG_IGN)
        child_processes.kill_children()
    if not _received_signals:
        sys.exit(exit_code)
    if exit_code != 0:
        exit_code = 128 + _received_signals[0]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reading end of a pipe may be closed
            stream.flush()
    os._exit(exit_code)  # sys.exit would wait for py4j's threads, which may still wait for the JVM
