"""The state of an environment where it lies, and the lock by which one deployment at a time changes it."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import Place
from headrace.errors import DataError, DeploymentError
from headrace.liveness import process_exists

Say = Callable[[str], None]


@dataclass(frozen=True)
class Lock:
    """Who is changing the environment."""

    id: str
    owner: str
    host: str
    machine: str  # tells a machine and its processes from others of the same name
    process: int
    since: str
    what: str

    @property
    def age(self) -> str:
        """How long it has been held, in words."""
        return in_words((datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds())

    @property
    def is_dead(self) -> bool:
        """Whether its process was on this machine and is surely gone."""
        return bool(self.machine) and self.machine == _machine() and not process_exists(self.process)


class Ledger:
    """What is written down at one place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._state, self._lock = f"{place.root}/state.json", f"{place.root}/lock.json"

    def read(self) -> State:
        """The state; a new one where nothing was ever deployed."""
        found = self._place.remote.read(self._state)
        if found is None:
            return State(lineage="")
        try:
            return State.of(found.decode())
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the state of environment {self._place.name!r} cannot be read: {error}",
                where=f"{self._place.remote.name}: {self._state}",
                fix="use the Headrace that wrote it, or a newer one",
            ) from error

    def write(self, state: State) -> State:
        """Writes the state down under the next serial."""
        new = replace(state, lineage=state.lineage or uuid.uuid4().hex, serial=state.serial + 1)
        self._place.remote.write(self._state, new.text().encode())
        return new

    @contextmanager
    def locked(self, what: str, *, break_lock: bool, say: Say) -> Iterator[None]:
        """Holds the lock; another's is refused, unless it is broken or its process is gone."""
        remote, own = self._place.remote, self._own(what)
        remote.make_directory(self._place.root)
        content = (json.dumps(asdict(own), indent=1) + "\n").encode()
        while not remote.write_new(self._lock, content):
            found = remote.read(self._lock)
            if found is None:
                continue  # given up meanwhile
            other = Lock(**json.loads(found))
            words = f"the lock of {other.owner} on {other.host} (process {other.process}, {other.age} old)"
            if not (break_lock or other.is_dead):
                raise self._refusal(other)
            say(f"{words} is {'broken' if not other.is_dead else 'taken over: that process is gone'}")
            remote.delete(self._lock)
        try:
            yield
        finally:
            if remote.read(self._lock) == content:
                remote.delete(self._lock)

    def clear(self) -> None:
        """Takes away the lock of a process that is gone; all that it had to do was done."""
        found = self._place.remote.read(self._lock)
        if found is not None and Lock(**json.loads(found)).is_dead:
            self._place.remote.delete(self._lock)

    def _own(self, what: str) -> Lock:
        return Lock(
            uuid.uuid4().hex, self._place.user, socket.gethostname(), _machine(), os.getpid(), timestamp(), what
        )

    def _refusal(self, lock: Lock) -> DeploymentError:
        return DeploymentError(
            f"environment {self._place.name!r} is being changed by {lock.owner} on {lock.host} "
            f"(process {lock.process}, {lock.what}, for {lock.age})",
            where=f"{self._place.remote.name}: {self._lock}",
            fix="wait for it; if that process is gone, run the same command with --break-lock",
        )


def timestamp() -> str:
    """Now, as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def in_words(seconds: float) -> str:
    """A length of time, in its largest unit."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= size or size == 1:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError(seconds)


def _machine() -> str:
    """This boot of this machine and its numbering of processes; empty where that is not told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
