"""The child processes that are killed when the command ends or a signal interrupts it."""

from __future__ import annotations

import subprocess
from typing import Any

CHILDREN: list[subprocess.Popen[Any]] = []  # the code that starts such a process appends it


def kill_children() -> None:
    """Kill the processes in CHILDREN that still run, and wait until all of them have ended."""
    for process in CHILDREN:
        if process.poll() is None:
            process.kill()
    for process in CHILDREN:
        process.wait()
    CHILDREN.clear()
