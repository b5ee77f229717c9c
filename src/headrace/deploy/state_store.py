"""Read and write the state of an environment, and lock it, so that only one command at a time changes it."""

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

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.stored_json import from_document, to_document
from headrace.errors import DataError, DeploymentError
from headrace.liveness import process_exists

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

    @property
    def age(self) -> str:
        """How long the lock has been held, as text."""
        return format_duration((datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds())

    @property
    def is_dead(self) -> bool:
        """Whether the process that created the lock has ended. False if this is unknown, as on another machine."""
        return bool(self.machine) and self.machine == _machine_id() and not process_exists(self.process)


class StateStore:
    """The files state.json and lock.json of one environment."""

    def __init__(self, target: DeployTarget) -> None:
        self._target = target
        self._state_path, self._lock_path = f"{target.root}/state.json", f"{target.root}/lock.json"

    def read(self) -> State:
        """Return the state, or an empty one if nothing was deployed yet."""
        content = self._target.remote.read_file(self._state_path)
        if content is None:
            return State(lineage="")
        try:
            return State.from_json(content.decode())
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the state of environment {self._target.name!r} cannot be read: {error}",
                where=f"{self._target.remote.name}: {self._state_path}",
                fix="use the version of Headrace that wrote it, or a newer one",
            ) from error

    def write(self, state: State) -> State:
        """Write the state with the next serial, and with a lineage if it has none; return the written state."""
        new = replace(state, lineage=state.lineage or uuid.uuid4().hex, serial=state.serial + 1)
        self._target.remote.write_file(self._state_path, new.to_json().encode())
        return new

    @contextmanager
    def locked(self, command: str, *, break_lock: bool, report: Report) -> Iterator[None]:
        """Hold the lock of the environment during this block. `command` describes the holder in messages to others.

        If another command holds the lock, raise DeploymentError, unless `break_lock` is set or the process of the other
        command has ended; in these two cases, replace its lock.
        """
        remote, own = self._target.remote, self._new_lock(command)
        remote.make_directory(self._target.root)
        content = (json.dumps(to_document(own), indent=1) + "\n").encode()
        while not remote.create_file(self._lock_path, content):
            existing = remote.read_file(self._lock_path)
            if existing is None:
                continue  # the other command has released the lock in the meantime
            other = from_document(Lock, json.loads(existing))
            if not (break_lock or other.is_dead):
                raise self._locked_error(other)
            reason = "is taken over: its process has ended" if other.is_dead else "is broken"
            report(f"the lock of {other.owner} on {other.host} (process {other.process}, {other.age} old) {reason}")
            remote.delete(self._lock_path)
        try:
            yield
        finally:
            if remote.read_file(self._lock_path) == content:  # otherwise another command broke this lock
                remote.delete(self._lock_path)

    def remove_abandoned_lock(self) -> None:
        """Delete the lock if its process has ended. A command calls this instead of `locked` if it changes nothing."""
        content = self._target.remote.read_file(self._lock_path)
        if content is not None and from_document(Lock, json.loads(content)).is_dead:
            self._target.remote.delete(self._lock_path)

    def _new_lock(self, command: str) -> Lock:
        host, user = socket.gethostname(), self._target.user
        return Lock(uuid.uuid4().hex, user, host, _machine_id(), os.getpid(), timestamp(), command)

    def _locked_error(self, lock: Lock) -> DeploymentError:
        return DeploymentError(
            f"environment {self._target.name!r} is being changed by {lock.owner} on {lock.host} "
            f"(process {lock.process}, {lock.command}, for {lock.age})",
            where=f"{self._target.remote.name}: {self._lock_path}",
            fix="wait until that command ends; if its process has ended, run the same command with --break-lock",
        )


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


def _machine_id() -> str:
    """Return an identifier of the current boot and the namespace of process ids, or "" on systems without /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
