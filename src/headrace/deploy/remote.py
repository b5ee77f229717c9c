"""What deployments need from a Databricks workspace, or from a directory beside a Spark cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ACTIVE = frozenset({"BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING_FOR_RETRY"})


@dataclass(frozen=True)
class RemoteJob:
    """A job and its current settings."""

    id: int
    settings: dict[str, Any]

    @property
    def tag(self) -> str:
        """The tag bundle/environment/job; empty if Headrace did not deploy the job."""
        return str((self.settings.get("tags") or {}).get("headrace", ""))


@dataclass(frozen=True)
class Run:
    """One run of a job."""

    id: int
    phase: str  # the platform's life-cycle state
    result: str = ""  # empty until the run has ended
    message: str = ""
    began: int = 0  # milliseconds
    ended: int = 0
    url: str = ""
    paths: tuple[str, ...] = ()  # paths in releases that its tasks named when it started
    tasks: dict[str, int] = field(default_factory=dict)  # task key -> the task's own run

    @property
    def is_active(self) -> bool:
        """Whether the run has not ended."""
        return self.phase in ACTIVE

    def uses(self, release: str) -> bool:
        """Return whether the run uses this release, or none, as runs of notebooks and queries do."""
        return not self.paths or self.references(release)

    def references(self, release: str) -> bool:
        """Return whether the run reads files of this release."""
        return any(f"/releases/{release}/" in path for path in self.paths)


class Remote(Protocol):
    """A Databricks workspace, or the directory of a Spark cluster."""

    name: str
    max_file_size: int | None  # bytes that `read_file` can return; None for no limit

    def user(self) -> str:
        """Return the user name that the calls are made with."""

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""

    def write_file(self, path: str, content: bytes) -> None:
        """Write or replace a file; its directory must exist."""

    def create_file(self, path: str, content: bytes) -> bool:
        """Create a file and return True, or return False if it exists."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they do not exist."""

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory; none if it does not exist."""

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""

    def grant_read(self, directory: str, principal: dict[str, str]) -> None:
        """Let a principal read a directory."""

    def get_job(self, job_id: int) -> RemoteJob | None:
        """Return a job, or None if it was deleted."""

    def list_jobs(self, name: str) -> list[RemoteJob]:
        """Return the jobs with this name."""

    def create_job(self, body: dict[str, Any]) -> int:
        """Create a job and return its id; a second call with the same tag does not create a second job."""

    def reset_job(self, job_id: int, body: dict[str, Any]) -> None:
        """Replace all settings of a job."""

    def delete_job(self, job_id: int) -> None:
        """Delete a job if it exists."""

    def set_permissions(self, job_id: int, grants: Sequence[dict[str, str]]) -> None:
        """Replace the permissions on a job; the owner stays."""

    def list_runs(self, job_id: int, *, active: bool = False) -> list[Run]:
        """Return the latest runs of a job, or only the active ones; the newest first."""

    def start_run(self, job_id: int, token: str) -> int:
        """Start a run and return its id; a second call with the same token does not start a second run."""

    def get_run(self, run_id: int) -> Run:
        """Return a run."""

    def cancel_run(self, run_id: int) -> None:
        """Cancel a run if it is active; do not wait for its end."""

    def read_output(self, run: Run) -> str:
        """Return the output of the run's tasks."""

    def write_request(self, path: str, content: bytes) -> bool:
        """Write a stop request beside the checkpoints; return False if this path cannot be written."""

    def delete_request(self, path: str) -> None:
        """Delete a stop request if it exists."""
