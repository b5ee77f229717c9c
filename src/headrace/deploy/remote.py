"""The interface of a deployment to a Databricks workspace, or to a directory beside a Spark cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ACTIVE_PHASES = frozenset({"BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING_FOR_RETRY"})

UNKNOWN_SIZE = -1  # of a file whose size the workspace does not return
RELEASE_PATH = re.compile(r"/releases/(\w+)(?:/|\Z)")


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
    began: int = 0  # milliseconds since 1970
    ended: int = 0  # likewise; 0 until the run has ended
    url: str = ""
    paths: tuple[str, ...] = ()  # paths of release files in the tasks' settings, as of the start of the run
    tasks: dict[str, int] = field(default_factory=dict)  # task key -> id of the task's run

    @property
    def is_active(self) -> bool:
        """Whether the run has not ended."""
        return self.phase in ACTIVE_PHASES

    @property
    def release(self) -> str:
        """The id of the release that the run uses; empty if there is none, like for a run of a notebook."""
        return release_of(list(self.paths))

    @property
    def has_failed(self) -> bool:
        """Whether the run has ended without success, and was not cancelled."""
        return not self.is_active and self.result not in ("SUCCESS", "CANCELED", "EXCLUDED")

    def uses(self, release: str) -> bool:
        """Return whether the run uses this release, or no release at all, like a run of a notebook."""
        return not self.paths or self.references(release)

    def references(self, release: str) -> bool:
        """Return whether a task of the run names a file of this release."""
        return any(f"/releases/{release}/" in path for path in self.paths)


def release_of(settings: Any) -> str:
    """Return the id of the release whose files a job with these settings uses; empty if there is none.

    `settings` may be any part of the settings.
    """
    if isinstance(settings, str):
        match = RELEASE_PATH.search(settings)
        return match[1] if match else ""
    if isinstance(settings, dict | list):
        values = settings.values() if isinstance(settings, dict) else settings
        return next(filter(None, map(release_of, values)), "")
    return ""


class Remote(Protocol):
    """A Databricks workspace, or the directory beside a Spark cluster."""

    name: str  # the host of the workspace, or the path of the directory

    def user(self) -> str:
        """Return the name of the user who makes the calls."""

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""

    def write_file(self, path: str, content: bytes) -> None:
        """Write or replace a file; its directory must exist."""

    def create_file(self, path: str, content: bytes) -> bool:
        """Create a file and return True, or return False if it exists."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they do not exist."""

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory; an empty list if it does not exist."""

    def file_sizes(self, path: str) -> dict[str, int]:
        """Return the sizes of all files below a directory, by their paths in it; none if it does not exist.

        A size that the workspace does not return is UNKNOWN_SIZE.
        """

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""

    def grant_read(self, directory: str, principal: dict[str, str]) -> None:
        """Grant a user, a group or a service principal read access to a directory."""

    def get_job(self, job_id: int) -> RemoteJob | None:
        """Return a job, or None if it was deleted."""

    def list_jobs(self, name: str | None = None, *, with_tasks: bool = False) -> list[RemoteJob]:
        """Return the jobs with this name, or all jobs.

        Their settings may lack lists; only with `with_tasks` they have the tasks. `get_job` returns all settings.
        """

    def create_job(self, body: dict[str, Any]) -> int:
        """Create a job and return its id. A repeated call with the same tag does not create a second job."""

    def reset_job(self, job_id: int, body: dict[str, Any]) -> None:
        """Replace all settings of a job. Active runs keep the settings that they started with."""

    def delete_job(self, job_id: int) -> None:
        """Delete a job if it exists."""

    def set_permissions(self, job_id: int, grants: Sequence[dict[str, str]]) -> None:
        """Replace the permissions on a job; the owner stays unless `grants` has another one."""

    def list_runs(self, job_id: int, *, active: bool = False) -> list[Run]:
        """Return the latest runs of a job, or all active runs if `active`; the newest run first."""

    def start_run(self, job_id: int, token: str) -> int:
        """Start a run and return its id. A repeated call with the same token does not start a second run."""

    def submit_run(self, body: dict[str, Any], token: str) -> int:
        """Start a run that belongs to no job, and return its id. A repeated call with the same token starts none."""

    def get_run(self, run_id: int) -> Run:
        """Return the current state of a run."""

    def cancel_run(self, run_id: int) -> None:
        """Cancel a run if it is active; do not wait for its end."""

    def read_output(self, run: Run) -> str:
        """Return the output of the run's tasks."""

    def write_request(self, path: str, content: bytes) -> bool:
        """Write a stop request beside the checkpoints and return True. Return False if the path is not writable."""

    def delete_request(self, path: str) -> None:
        """Delete a stop request if it exists."""

    def read_checkpoint_file(self, path: str) -> bytes | None:
        """Return the content of a file beside the checkpoints, or None if it does not exist."""
