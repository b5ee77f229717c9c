"""Detect whether a run is alive: each run holds a lock on a file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

LOCKED: dict[Path, IO[str]] = {}  # a lock lasts as long as its file is open


def process_exists(process: int) -> bool:
    """Return whether a process with this id exists, of any user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def acquire(file: Path) -> None:
    """Create the file and lock it while this process is alive. Remove it if the file system has no locks."""
    handle = file.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        file.unlink(missing_ok=True)
    else:
        LOCKED[file] = handle


def release(file: Path) -> None:
    """Unlock and remove a file that this process has locked."""
    if handle := LOCKED.pop(file, None):
        file.unlink(missing_ok=True)
        handle.close()


def is_locked(file: Path) -> bool:
    """Return whether a process has locked the file."""
    try:
        with file.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
