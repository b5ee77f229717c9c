"""Child processes that are killed if this process is interrupted."""

from __future__ import annotations

import subprocess
from typing import Any

CHILDREN: list[subprocess.Popen[Any]] = []


def kill_children() -> None:
    """Kill the registered child processes that still run, and wait until they have ended."""
    for process in CHILDREN:
        if process.poll() is None:
            process.kill()
    for process in CHILDREN:
        process.wait()
    CHILDREN.clear()
