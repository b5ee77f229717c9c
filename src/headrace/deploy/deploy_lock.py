"""The lock of an environment: only the command that holds it may change the environment."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.stored_json import from_document, to_document
from headrace.errors import DeploymentError
from headrace.liveness import process_exists

LOCK_FILE = "lock.json"
MAX_REPLACED = 20  # ids of replaced locks
Report = Callable[[str], None]  # prints one line of progress


@dataclass(frozen=True)
class Lock:
    """The content of lock.json: the command that is changing the environment."""

    id: str
    owner: str
    host: str
    machine: str  # from `_machine_id`, because host names are not unique
    process: int  # process id
    since: str
    command: str
    replaces: tuple[str, ...] = ()  # the ids of locks that were not released by their commands, in a row

    @property
    def age(self) -> str:
        """How long the lock has been held, as text."""
        return format_duration((datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds())

    @property
    def is_dead(self) -> bool:
        """Whether the process that created the lock has ended. False if this is unknown, as on another machine."""
        return bool(self.machine) and self.machine == _machine_id() and not process_exists(self.process)


@dataclass(frozen=True)
class HeldLock:
    """The lock that a command holds."""

    target: DeployTarget
    content: bytes

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the lock, and the ids of the locks that it has replaced."""
        return lock_ids(self.content)

    def require_held(self) -> None:
        """Raise DeploymentError if another command has broken the lock."""
        found = self.target.remote.read_file(lock_path(self.target))
        if found == self.content:
            return
        other = _parse(found) if found else None
        owner = f"{other.owner} on {other.host} ({other.command})" if other else "another command"
        raise DeploymentError(
            f"{owner} has broken the lock of this command, and may have changed environment {self.target.name!r}",
            where=f"{self.target.remote.name}: {lock_path(self.target)}",
            fix=f"see what it has done: headrace history --env {self.target.name}; then make a new plan",
        )


def lock_path(target: DeployTarget) -> str:
    """Return the path of the environment's lock."""
    return f"{target.root}/{LOCK_FILE}"


@contextmanager
def hold_lock(target: DeployTarget, command: str, *, break_lock: bool, report: Report) -> Iterator[HeldLock]:
    """Hold the lock of the environment during this block. `command` describes the holder in messages to others.

    If another command holds the lock, raise DeploymentError, unless `break_lock` is set or the process of the other
    command has ended; in these two cases, replace its lock.
    """
    remote, path = target.remote, lock_path(target)
    host, machine, process = socket.gethostname(), _machine_id(), os.getpid()
    own = Lock(uuid.uuid4().hex, target.user, host, machine, process, timestamp(), command)
    remote.make_directory(target.root)
    while not remote.create_file(path, content := _to_json(own)):
        existing = remote.read_file(path)
        if existing is None:
            continue  # the other command has released the lock in the meantime
        other = _parse(existing)
        if not (break_lock or (other and other.is_dead)):
            raise _locked_error(target, other)
        report(_broken(other))
        own = replace(own, replaces=lock_ids(existing)[:MAX_REPLACED])
        remote.delete(path)
    try:
        yield HeldLock(target, content)
    finally:
        if remote.read_file(path) == content:  # otherwise another command broke this lock
            remote.delete(path)


def remove_abandoned_lock(target: DeployTarget) -> None:
    """Delete the lock if its process has ended. A command calls this instead of `hold_lock` if it changes nothing."""
    content = target.remote.read_file(lock_path(target))
    lock = _parse(content) if content else None
    if lock and lock.is_dead:
        target.remote.delete(lock_path(target))


def lock_ids(content: bytes) -> tuple[str, ...]:
    """Return the id of the lock that a file describes, and of the locks that it has replaced; none if it is no lock."""
    lock = _parse(content)
    return (lock.id, *lock.replaces) if lock else ()


def timestamp() -> str:
    """Return the current time as ISO 8601 text, the format of the state."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def format_duration(seconds: float) -> str:
    """Return a duration as text in the largest unit that fits, such as `3 hours`."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= size or size == 1:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError(seconds)


def _to_json(lock: Lock) -> bytes:
    """Return the content of a lock file. Earlier versions do not know `replaces`, so it is left out if it is empty."""
    document = to_document(lock)
    if not lock.replaces:
        del document["replaces"]
    return (json.dumps(document, indent=1) + "\n").encode()


def _parse(content: bytes) -> Lock | None:
    """Return the lock that a file describes, or None if it is not a lock."""
    try:
        document = json.loads(content)
        return from_document(Lock, {**document, "replaces": tuple(document.get("replaces", ()))})
    except (ValueError, TypeError, AttributeError):
        return None


def _locked_error(target: DeployTarget, lock: Lock | None) -> DeploymentError:
    where = f"{target.remote.name}: {lock_path(target)}"
    if lock is None:
        return DeploymentError(
            f"the lock of environment {target.name!r} cannot be read",
            where=where,
            fix="make sure that no other command changes the environment, then run this one with --break-lock",
        )
    return DeploymentError(
        f"environment {target.name!r} is being changed by {lock.owner} on {lock.host} "
        f"(process {lock.process}, {lock.command}, for {lock.age})",
        where=where,
        fix="wait until that command ends; if its process has ended, run the same command with --break-lock",
    )


def _broken(lock: Lock | None) -> str:
    if lock is None:
        return "the lock, which cannot be read, is broken"
    reason = "is taken over: its process has ended" if lock.is_dead else "is broken"
    return f"the lock of {lock.owner} on {lock.host} (process {lock.process}, {lock.age} old) {reason}"


def _machine_id() -> str:
    """Return an identifier of the current boot and the namespace of process ids, or "" on systems without /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
