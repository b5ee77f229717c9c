"""Other processes of this machine."""

from __future__ import annotations

import os


def is_alive(process: int) -> bool:
    """Whether a process of that number is there, whoever's it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
