"""Detect whether a run is alive: each run keeps a file locked until it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

LOCKED_FILES: dict[Path, IO[str]] = {}  # those of this process, by path; closing a file releases its lock


def process_exists(pid: int) -> bool:
    """Return whether a process with this id exists. It may belong to another user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def acquire(file: Path) -> None:
    """Create the file, and lock it until `release` or the end of this process.

    If the file cannot be locked, because the file system has no locks, remove it.
    """
    opened = file.open("a")
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        opened.close()
        file.unlink(missing_ok=True)
    else:
        LOCKED_FILES[file] = opened


def release(file: Path) -> None:
    """Remove and unlock a file that this process has locked. Do nothing for other files."""
    if opened := LOCKED_FILES.pop(file, None):
        file.unlink(missing_ok=True)
        opened.close()


def is_locked(file: Path) -> bool:
    """Return whether any process has locked the file; False if there is no such file."""
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
