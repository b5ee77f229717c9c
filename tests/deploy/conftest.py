"""A second user of the workspace."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient

from headrace.testing.workspace import LocalWorkspace


@pytest.fixture
def client(workspace: LocalWorkspace) -> WorkspaceClient:
    """A client of another user, to inspect the workspace and to change it outside Headrace."""
    return workspace.client("bob")
