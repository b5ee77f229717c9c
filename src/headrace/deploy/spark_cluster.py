"""A directory beside a plain Spark cluster: releases and jobs are files, runs are processes here.

There is no scheduler: a continuous job is started by its deployment, and goes on until it is stopped or fails, and
schedules are not kept. Who may read what is the file system's business.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.deploy import submitted_run
from headrace.deploy.deploy_state import runs_by_itself
from headrace.deploy.remote import Found, Run
from headrace.errors import DeploymentError, one_line
from headrace.liveness import is_locked

RUNS = 25  # the latest, that are told


class Cluster:
    """One such directory."""

    largest: int | None = None

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        self._jobs, self._runs = directory / ".jobs", directory / ".runs"
        try:
            for place in (self._jobs, self._runs):
                place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fix = "make it writable, or name another under engine: {releases: …}"
            raise DeploymentError(f"cannot write to it: {one_line(error)}", where=self.name, fix=fix) from error

    def user(self) -> str:
        """The user of this machine."""
        return getpass.getuser()

    # ── Files ─────────────────────────────────────────────────────────────────────────────────────────

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None when it is not there."""
        with suppress(FileNotFoundError):
            return Path(path).read_bytes()
        return None

    def write(self, path: str, content: bytes) -> None:
        """Writes a whole file, over what is there."""
        _beside(Path(path), content).replace(path)

    def write_new(self, path: str, content: bytes) -> bool:
        """Writes a file that is not there yet; False when it is."""
        beside = _beside(Path(path), content)
        try:
            os.link(beside, path)
        except FileExistsError:
            return False
        finally:
            beside.unlink()
        return True

    def make_directory(self, path: str) -> None:
        """Makes the directory and those above it, where they are not there."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def names(self, path: str) -> list[str]:
        """The names in a directory; none when it is not there."""
        return sorted(one.name for one in Path(path).iterdir()) if Path(path).is_dir() else []

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all in it; it may be gone already."""
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def let_read(self, directory: str, who: dict[str, str]) -> None:
        """Nothing: the file system says who may read."""

    def ask(self, path: str, content: bytes) -> bool:
        """Leaves a request beside checkpoints on this machine's disk."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)  # the run may be so young that it has written nothing
            self.write(path, content)
        except OSError:
            return False
        return True

    def withdraw(self, path: str) -> None:
        """Delete a request; it may be gone already."""
        Path(path).unlink(missing_ok=True)

    # ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────

    def job(self, number: int) -> Found | None:
        """A job; None when it is gone."""
        written = self.read(str(self._jobs / f"{number}.json"))
        return None if written is None else Found(number, json.loads(written))

    def jobs_named(self, name: str) -> list[Found]:
        """The jobs of that name."""
        found = [self.job(int(file.stem)) for file in self._jobs.glob("[0-9]*.json")]
        return [job for job in found if job is not None and job.settings["name"] == name]

    def create_job(self, body: dict[str, Any]) -> int:
        """Makes a job; the same tag is never made twice."""
        tag = body["tags"]["headrace"]
        made = next((job for job in self.jobs_named(body["name"]) if job.tag == tag), None)
        number = made.id if made else 1 + max((int(file.stem) for file in self._jobs.glob("[0-9]*.json")), default=0)
        while made is None and not self.write_new(str(self._jobs / f"{number}.json"), _text(body)):
            number += 1
        self._keep(number, body)
        return number

    def reset_job(self, number: int, body: dict[str, Any]) -> None:
        """Replaces all that a job says."""
        self.write(str(self._jobs / f"{number}.json"), _text(body))
        self._keep(number, body)

    def delete_job(self, number: int) -> None:
        """Deletes a job; it may be gone already."""
        self.delete(str(self._jobs / f"{number}.json"))

    def grant(self, number: int, grants: Sequence[dict[str, str]]) -> None:
        """Nothing: the file system says who may do what."""

    def _keep(self, number: int, body: dict[str, Any]) -> None:
        """A continuous job that is not paused has its run."""
        if runs_by_itself(body) and not self.runs(number, active=True):
            self.start(number, uuid.uuid4().hex)

    # ── Runs ──────────────────────────────────────────────────────────────────────────────────────────

    def runs(self, job: int, *, active: bool = False) -> list[Run]:
        """The latest runs of a job, or those that have not ended; the newest first."""
        numbers = sorted((int(place.name) for place in self._runs.glob("[0-9]*")), reverse=True)
        own = [number for number in numbers if self._order(number).get("job") == job][:RUNS]
        found = [self.run(number) for number in own]
        return [run for run in found if run.is_active] if active else found

    def run(self, number: int) -> Run:
        """One run."""
        order, place = self._order(number), self._runs / str(number)
        written = self.read(str(place / submitted_run.RESULT))
        result = json.loads(written) if written else {}
        alive = not result and is_locked(place / submitted_run.ALIVE)
        if result:
            phase, message = "TERMINATED", result["message"]
        elif alive or time.time() - order["began"] < submitted_run.BEGINNING:
            phase, message = ("RUNNING", "") if alive else ("PENDING", "")
        else:
            phase, message = "INTERNAL_ERROR", f"its process on {order['host']} is gone"
        return Run(
            id=number,
            phase=phase,
            result=result.get("result", ""),
            message=message,
            began=int(order["began"] * 1000),
            ended=int(result.get("ended", 0) * 1000),
            url=str(place),
            paths=tuple(order["wheels"]),
            tasks=dict.fromkeys((task["task_key"] for task in order["tasks"]), number),
        )

    def start(self, job: int, token: str) -> int:
        """Starts a run; the same token never starts two."""
        found = self.job(job)
        if found is None:
            raise DeploymentError(f"job {job} is not there", where=self.name, fix="deploy it again")
        for run in self.runs(job):
            if self._order(run.id)["token"] == token:
                return run.id
        number = 1 + max((int(place.name) for place in self._runs.glob("[0-9]*")), default=0)
        place = self._runs / str(number)
        place.mkdir()
        tasks = [task for task in found.settings["tasks"] if "python_wheel_task" in task]
        wheels = sorted({one["whl"] for task in tasks for one in task.get("libraries", []) if "whl" in one})
        order = {"job": job, "token": token, "began": time.time(), "tasks": tasks, "wheels": wheels}
        order["host"] = socket.gethostname()
        self.write(str(place / submitted_run.ORDER), _text(order))
        with (place / submitted_run.LOG).open("wb") as log:
            subprocess.Popen(
                [sys.executable, "-P", submitted_run.__file__, str(place)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place,
                start_new_session=True,  # it goes on when this process has ended
            )
        return number

    def cancel(self, run: int) -> None:
        """Asks a run to end, which it does at its batch's end."""
        order = self._order(run)
        if not self.run(run).is_active:
            return
        if order["host"] != socket.gethostname():
            raise DeploymentError(
                f"run {run} is a process of {order['host']}", where=self.name, fix="run the same command there"
            )
        with suppress(ProcessLookupError, ValueError):
            os.kill(int((self._runs / str(run) / submitted_run.ALIVE).read_text()), signal.SIGTERM)

    def output(self, run: Run) -> str:
        """What the run's tasks have said."""
        return (self._runs / str(run.id) / submitted_run.LOG).read_text(errors="replace")

    def _order(self, number: int) -> dict[str, Any]:
        written = self.read(str(self._runs / str(number) / submitted_run.ORDER))
        return json.loads(written) if written else {}


def _beside(path: Path, content: bytes) -> Path:
    beside = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    beside.write_bytes(content)
    return beside


def _text(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
