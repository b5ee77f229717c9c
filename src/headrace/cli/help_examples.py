"""Examples at the end of a command's help text."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """Return an epilog that lists the commands. Its first line, "\\b", makes click keep the line breaks."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {command}" for command in commands)])
