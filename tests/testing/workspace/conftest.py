"""Fixtures: a workspace that starts no processes, and a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from databricks.sdk import WorkspaceClient

from headrace.testing.workspace import LocalWorkspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[LocalWorkspace]:
    with LocalWorkspace(tmp_path / "workspace", execute=False, restart_delay=0.01) as running:
        yield running


@pytest.fixture
def client(workspace: LocalWorkspace) -> WorkspaceClient:
    return workspace.client("alice")
