"""Child processes of this process, which are killed if it is interrupted."""

from __future__ import annotations

import subprocess
from typing import Any

CHILDREN: list[subprocess.Popen[Any]] = []  # to be killed if this process is interrupted


def kill_children() -> None:
    """Kill the recorded child processes that still run, and wait until they are gone."""
    for process in CHILDREN:
        if process.poll() is None:
            process.kill()
    for process in CHILDREN:
        process.wait()
    CHILDREN.clear()
