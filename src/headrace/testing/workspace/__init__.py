"""A local Databricks workspace: its REST API over a directory, with jobs that run as real processes."""

from headrace.testing.workspace.faults import Call, Faults
from headrace.testing.workspace.local_workspace import LocalWorkspace

__all__ = ["Call", "Faults", "LocalWorkspace"]
