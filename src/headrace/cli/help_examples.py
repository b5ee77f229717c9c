"""The end of a command's help: example calls."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """Return the commands as an epilog that click neither wraps nor joins."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {command}" for command in commands)])
