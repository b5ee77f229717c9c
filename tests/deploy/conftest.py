"""Somebody else in the workspace."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient

from headrace.testing.workspace import LocalWorkspace


@pytest.fixture
def client(workspace: LocalWorkspace) -> WorkspaceClient:
    """Looks, or changes things by hand."""
    return workspace.client("bob")
