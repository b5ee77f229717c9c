"""Conversion of workspace paths and volume paths to local paths."""

from __future__ import annotations

import hashlib
from pathlib import Path

from headrace.testing.workspace.http_messages import invalid_parameter

# The first component of a path, on Databricks and below the local directory of the workspace.
WORKSPACE, VOLUMES = "Workspace", "Volumes"


def split_path(path: str) -> list[str]:
    """Return the components of an absolute path; raise ApiError if it is relative or contains `.`, `..` or NUL."""
    if not path.startswith("/"):
        raise invalid_parameter(f"Path ({path}) doesn't start with '/'")
    names = [name for name in path.split("/") if name]
    if ".." in names or "." in names or "\0" in path:
        raise invalid_parameter(f"Path ({path}) is not valid")
    return names


def split_workspace_path(path: str) -> list[str]:
    """Return the components below the workspace's root. /Workspace/Shared and /Shared are the same directory."""
    names = split_path(path)
    return names[1:] if names[:1] == [WORKSPACE] else names


def object_id(names: list[str]) -> int:
    """Return the id of a workspace object: a hash of the names in its path, so that it is the same after a restart."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6])


def local_path(text: str, workspace_directory: Path) -> str:
    """Return the local path of a workspace path or volume path; return any other text unchanged."""
    path = text.removeprefix("dbfs:")
    if path.split("/", 2)[:2] in (["", WORKSPACE], ["", VOLUMES]):
        return str(workspace_directory.joinpath(*split_path(path)))
    return text
