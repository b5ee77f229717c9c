"""Other processes, of this machine and of containers that share its files."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path
from typing import IO, Any

CHILDREN: list[subprocess.Popen[Any]] = []  # to be killed if this process is interrupted
HELD: dict[Path, IO[str]] = {}  # a lock lives as long as its open file


def is_alive(process: int) -> bool:
    """Whether a process of that number is there, whoever's it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def hold(file: Path) -> None:
    """Shows by a lock on the file that this process lives; where a file system has no locks, there is no file."""
    handle = file.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        file.unlink(missing_ok=True)
    else:
        HELD[file] = handle


def let_go(file: Path) -> None:
    """Takes the file away that this process has held."""
    if handle := HELD.pop(file, None):
        file.unlink(missing_ok=True)
        handle.close()


def is_held(file: Path) -> bool:
    """Whether a process holds the file's lock."""
    try:
        with file.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def kill_children() -> None:
    """Kill the recorded child processes that still run, and wait until they are gone."""
    for process in CHILDREN:
        if process.poll() is None:
            process.kill()
    for process in CHILDREN:
        process.wait()
    CHILDREN.clear()
