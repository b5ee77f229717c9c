"""Read and write the state of an environment.

Each write creates a new file `state-<serial>.json`, and fails if this file exists. So a command whose lock was broken
cannot overwrite what another command has written since. Before it changes a job or deletes a file, a command checks
that it still holds the lock: nothing else would stop these changes. The last KEPT files stay, for the case that one is
damaged.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from headrace.deploy import recovery
from headrace.deploy.deploy_lock import LOCK_FILE, HeldLock, Report, hold_lock, lock_ids, lock_path
from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
from headrace.errors import DataError, DeploymentError

KEPT = 20  # files of the state
STATE_FILE = re.compile(r"state-(\d+)\.json")
FIRST_FORMAT = "state.json"  # the only file of the state in earlier versions, which wrote version 1
RELEASES = "releases"
# Replaces the content of FIRST_FORMAT, so that earlier versions do not take the environment for an empty one.
MARKER = b'{"version": 2, "state": "the file state-<serial>.json with the highest serial"}\n'


class StateStore:
    """The files of the state of one environment, and its lock."""

    def __init__(self, target: DeployTarget) -> None:
        self._target = target
        self._lock: HeldLock | None = None
        self._serials: list[int] = []  # of the files that `read` has found and `write` has written
        self._needs_marker = True
        self._first_root = target.root  # where `read` has found a state of the first format

    def read(self) -> State:
        """Return the state, or an empty one if nothing was deployed yet.

        If the files of the state are lost, rebuild it from the environment's jobs and releases.
        """
        remote, root = self._target.remote, self._target.root
        names = remote.list_directory(root)
        self._serials = sorted(int(match[1]) for name in names if (match := STATE_FILE.fullmatch(name)))
        self._needs_marker = len(self._serials) < 2  # after a crash, the first file may be there without the marker
        if self._serials:
            state = self._parse(self._path(self._serials[-1]))
            return state if self._is_unfinished(state, names) else replace(state, intent=None)
        for path in self._first_format_files(names):
            content = remote.read_file(path)
            if content is not None and content != MARKER:
                self._first_root = path.removesuffix(f"/{FIRST_FORMAT}")
                return self._parse(path, content)
        return recovery.rebuild_state(self._target) if RELEASES in names else State(lineage="")

    def _first_format_files(self, names: Collection[str]) -> list[str]:
        """Return the files in which earlier versions may have written the state."""
        roots = [self._target.root] if FIRST_FORMAT in names else []
        is_empty = not {*names} - {LOCK_FILE}
        roots += [self._target.first_root] if self._target.first_root and is_empty else []
        return [f"{root}/{FIRST_FORMAT}" for root in roots]

    def _is_unfinished(self, state: State, names: Collection[str]) -> bool:
        """Return whether the deployment of the state's intent has not ended.

        A deployment that has its entry in the history has ended as soon as its command has released the lock. If the
        command was killed before that, its repetition continues the deployment, and is not taken for a new one.
        `names` are those of the files in the root.
        """
        intent = state.intent
        if intent is None or not intent.entry:
            return intent is not None
        if self._lock is not None:
            return intent.lock in self._lock.ids
        content = self._target.remote.read_file(lock_path(self._target)) if LOCK_FILE in names else None
        return content is not None and intent.lock in lock_ids(content)

    @property
    def lock_id(self) -> str:
        """The id of the lock that this command holds; empty if it holds none."""
        return self._lock.ids[0] if self._lock else ""

    def write(self, state: State) -> State:
        """Write the state with the next serial, and with a lineage if it has none; return the written state.

        Raise DeploymentError if another command has written this serial.
        """
        new = replace(state, lineage=state.lineage or uuid.uuid4().hex, serial=state.serial + 1)
        if not self._target.remote.create_file(self._path(new.serial), new.to_json().encode()):
            raise DeploymentError(
                f"another command has changed environment {self._target.name!r} while this one was running",
                where=f"{self._target.remote.name}: {self._path(new.serial)}",
                fix=f"see what it has done: headrace history --env {self._target.name}; then make a new plan",
            )
        if self._needs_marker:
            for root in {self._target.root, self._first_root}:
                self._target.remote.write_file(f"{root}/{FIRST_FORMAT}", MARKER)
            self._needs_marker = False
        self._serials.append(new.serial)
        return new

    def require_lock(self) -> None:
        """Raise DeploymentError if another command has broken the lock that this one holds."""
        if self._lock is not None:
            self._lock.require_held()

    @contextmanager
    def locked(self, command: str, *, break_lock: bool, report: Report) -> Iterator[None]:
        """Hold the lock of the environment during this block; see `hold_lock`."""
        with hold_lock(self._target, command, break_lock=break_lock, report=report) as self._lock:
            try:
                yield
                for serial in self._serials[:-KEPT]:
                    self._target.remote.delete(self._path(serial))
            finally:
                self._lock = None

    def _path(self, serial: int) -> str:
        return f"{self._target.root}/state-{serial}.json"

    def _parse(self, path: str, content: bytes | None = None) -> State:
        content = self._target.remote.read_file(path) if content is None else content
        try:
            return State.from_json((content or b"").decode())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if len(self._serials) > 1:
                instead = f"{self._path(self._serials[-2])} is used instead"
            else:
                instead = "the state is rebuilt from the jobs and releases of the environment"
            raise DataError(
                f"the state of environment {self._target.name!r} cannot be read: {error}",
                where=f"{self._target.remote.name}: {path}",
                fix="use the version of Headrace that wrote it, or a newer one; "
                f"if the file is damaged, delete it: {instead}",
            ) from error
