"""Paths of the workspace and of volumes, and where they lie on this machine's disk."""

from __future__ import annotations

import hashlib
from pathlib import Path

from headrace.testing.workspace.http_messages import invalid

WORKSPACE, VOLUMES = "Workspace", "Volumes"


def segments(path: str) -> list[str]:
    """The names in an absolute path."""
    if not path.startswith("/"):
        raise invalid(f"Path ({path}) doesn't start with '/'")
    names = [name for name in path.split("/") if name]
    if ".." in names or "." in names or "\0" in path:
        raise invalid(f"Path ({path}) is not valid")
    return names


def in_workspace(path: str) -> list[str]:
    """The names below the workspace's root: /Workspace/Shared and /Shared are the same directory."""
    names = segments(path)
    return names[1:] if names[:1] == [WORKSPACE] else names


def object_id(names: list[str]) -> int:
    """The number of a workspace object: made of its path, so that it is the same after a restart."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6])


def local_path(text: str, store: Path) -> str:
    """A text that is a path of the workspace or of a volume, as a path on this machine; any other as it is."""
    head = text.removeprefix("dbfs:").split("/", 2)[:2]
    if head in (["", WORKSPACE], ["", VOLUMES]):
        return str(store.joinpath(*segments(text.removeprefix("dbfs:"))))
    return text
