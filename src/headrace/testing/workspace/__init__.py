"""A local Databricks workspace: serves the REST API, stores everything in a directory, runs jobs as real processes."""

from headrace.testing.workspace.faults import Call, Faults
from headrace.testing.workspace.local_workspace import LocalWorkspace

__all__ = ["Call", "Faults", "LocalWorkspace"]
