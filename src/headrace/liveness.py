"""Show that a run is alive by a lock on a file, and whether other processes are."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

HELD: dict[Path, IO[str]] = {}  # a lock lives as long as its open file


def process_exists(process: int) -> bool:
    """Whether a process of that number is there, whoever's it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def acquire(file: Path) -> None:
    """Shows by a lock on the file that this process lives; where a file system has no locks, there is no file."""
    handle = file.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        file.unlink(missing_ok=True)
    else:
        HELD[file] = handle


def release(file: Path) -> None:
    """Takes the file away that this process has held."""
    if handle := HELD.pop(file, None):
        file.unlink(missing_ok=True)
        handle.close()


def is_locked(file: Path) -> bool:
    """Whether a process holds the file's lock."""
    try:
        with file.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
