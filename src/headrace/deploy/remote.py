"""Where releases and jobs go: what a deployment asks of a workspace, or of a directory beside a Spark cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ACTIVE = frozenset({"BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING_FOR_RETRY"})


@dataclass(frozen=True)
class Found:
    """A job as it is there."""

    id: int
    settings: dict[str, Any]

    @property
    def tag(self) -> str:
        """Which job of which bundle and environment it is; empty when it is none of ours."""
        return str((self.settings.get("tags") or {}).get("headrace", ""))


@dataclass(frozen=True)
class Run:
    """One run of a job, as it is there."""

    id: int
    phase: str  # the platform's life-cycle state
    result: str = ""  # once it has ended
    message: str = ""
    began: int = 0  # milliseconds
    ended: int = 0
    url: str = ""
    paths: tuple[str, ...] = ()  # of releases, that its tasks named at its start
    tasks: dict[str, int] = field(default_factory=dict)  # the tasks' own runs

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.phase in ACTIVE

    def uses(self, release: str) -> bool:
        """Whether it runs that release's bytes, or none at all: a notebook's, or those of a query."""
        return not self.paths or self.names(release)

    def names(self, release: str) -> bool:
        """Whether it needs the release where it lies."""
        return any(f"/releases/{release}/" in path for path in self.paths)


class Remote(Protocol):
    """One workspace, or one directory of a cluster."""

    name: str
    largest: int | None  # bytes of a file that can be read back; None for any

    def user(self) -> str:
        """Who the calls are made as."""

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None when it is not there."""

    def write(self, path: str, content: bytes) -> None:
        """Writes a whole file, over what is there; the directory must be there."""

    def write_new(self, path: str, content: bytes) -> bool:
        """Writes a file that is not there yet; False when it is."""

    def make_directory(self, path: str) -> None:
        """Makes the directory and those above it, where they are not there."""

    def names(self, path: str) -> list[str]:
        """The names in a directory; none when it is not there."""

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all in it; it may be gone already."""

    def let_read(self, directory: str, who: dict[str, str]) -> None:
        """Lets somebody read a directory."""

    def job(self, number: int) -> Found | None:
        """A job; None when it is gone."""

    def jobs_named(self, name: str) -> list[Found]:
        """The jobs of that name."""

    def create_job(self, body: dict[str, Any]) -> int:
        """Makes a job; the same tag is never made twice."""

    def reset_job(self, number: int, body: dict[str, Any]) -> None:
        """Replaces all that a job says."""

    def delete_job(self, number: int) -> None:
        """Deletes a job; it may be gone already."""

    def grant(self, number: int, grants: Sequence[dict[str, str]]) -> None:
        """Gives these permissions on a job and no others; the owner keeps it."""

    def runs(self, job: int, *, active: bool = False) -> list[Run]:
        """The latest runs of a job, or those that have not ended; the newest first."""

    def start(self, job: int, token: str) -> int:
        """Starts a run; the same token never starts two."""

    def run(self, number: int) -> Run:
        """One run."""

    def cancel(self, run: int) -> None:
        """Asks a run to end; it may have ended."""

    def output(self, run: Run) -> str:
        """What the run's tasks have said."""

    def ask(self, path: str, content: bytes) -> bool:
        """Leaves a request beside checkpoints; False when this is no place that can be written to."""

    def withdraw(self, path: str) -> None:
        """Delete a request; it may be gone already."""
