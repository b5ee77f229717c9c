"""A workspace on this machine: Databricks' REST API over a directory, with runs that really run."""

from headrace.testing.workspace.faults import Call, Faults
from headrace.testing.workspace.local_workspace import LocalWorkspace

__all__ = ["Call", "Faults", "LocalWorkspace"]
