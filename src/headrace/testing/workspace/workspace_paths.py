"""Paths of the workspace and of volumes, and the local paths where they are stored."""

from __future__ import annotations

import hashlib
from pathlib import Path

from headrace.testing.workspace.http_messages import invalid_parameter

WORKSPACE, VOLUMES = "Workspace", "Volumes"


def split_path(path: str) -> list[str]:
    """Return the components of an absolute path; raise ApiError if it is relative or has `.`, `..` or NUL."""
    if not path.startswith("/"):
        raise invalid_parameter(f"Path ({path}) doesn't start with '/'")
    names = [name for name in path.split("/") if name]
    if ".." in names or "." in names or "\0" in path:
        raise invalid_parameter(f"Path ({path}) is not valid")
    return names


def split_workspace_path(path: str) -> list[str]:
    """Return the components below the workspace's root: /Workspace/Shared and /Shared are the same directory."""
    names = split_path(path)
    return names[1:] if names[:1] == [WORKSPACE] else names


def object_id(names: list[str]) -> int:
    """Return the id of a workspace object: a hash of its path, so that it is the same after a restart."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6])


def local_path(text: str, store: Path) -> str:
    """Return the local path of a workspace or volume path; return any other text unchanged."""
    first_names = text.removeprefix("dbfs:").split("/", 2)[:2]
    if first_names in (["", WORKSPACE], ["", VOLUMES]):
        return str(store.joinpath(*split_path(text.removeprefix("dbfs:"))))
    return text
