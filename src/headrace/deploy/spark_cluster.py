"""A directory beside a plain Spark cluster: releases and jobs are files, runs are processes on this machine.

There is no scheduler. Instead, creating or resetting a job starts a run if the job is continuous, not paused, and has
no active run; the run lasts until it is stopped or fails. Schedules have no effect. File permissions apply.
"""

from __future__ import annotations

import getpass
import json
import os
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
from headrace.deploy.cluster_files import DirectoryFiles
from headrace.deploy.deploy_state import has_active_continuous_trigger
from headrace.deploy.remote import RemoteJob, Run
from headrace.errors import DeploymentError, one_line
from headrace.liveness import is_locked

MAX_RUNS = 25  # `list_runs` returns at most this many runs


class Cluster(DirectoryFiles):
    """The directory beside one Spark cluster."""

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        self._jobs, self._runs = directory / ".jobs", directory / ".runs"
        try:
            for subdirectory in (self._jobs, self._runs):
                subdirectory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fix = "make it writable, or name another directory: engine: {releases: DIRECTORY}"
            message = f"cannot write to the directory for releases: {one_line(error)}"
            raise DeploymentError(message, where=self.name, fix=fix) from error

    def user(self) -> str:
        """Return the user name on this machine."""
        return getpass.getuser()

    # ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────

    def get_job(self, job_id: int) -> RemoteJob | None:
        """Return a job, or None if it was deleted."""
        content = self.read_file(self._job_file(job_id))
        return None if content is None else RemoteJob(job_id, json.loads(content))

    def list_jobs(self, name: str | None = None, *, with_tasks: bool = False) -> list[RemoteJob]:
        """Return the jobs with this name, or all jobs."""
        jobs = [self.get_job(job_id) for job_id in self._job_ids()]
        return [job for job in jobs if job is not None and name in (None, job.settings["name"])]

    def create_job(self, body: dict[str, Any]) -> int:
        """Create a job and return its id. A repeated call with the same tag does not create a second job."""
        tag = body["tags"]["headrace"]
        existing = next((job for job in self.list_jobs(body["name"]) if job.tag == tag), None)
        if existing is not None:
            job_id = existing.id
        else:
            job_id = 1 + max(self._job_ids(), default=0)
            while not self.create_file(self._job_file(job_id), _to_json(body)):
                job_id += 1  # another deployment has just created a job with this id
        self._start_continuous_job(job_id, body)
        return job_id

    def reset_job(self, job_id: int, body: dict[str, Any]) -> None:
        """Replace all settings of a job. Start its run if it is continuous, not paused, and has no active run."""
        self.write_file(self._job_file(job_id), _to_json(body))
        self._start_continuous_job(job_id, body)

    def delete_job(self, job_id: int) -> None:
        """Delete a job if it exists."""
        self.delete(self._job_file(job_id))

    def set_permissions(self, job_id: int, grants: Sequence[dict[str, str]]) -> None:
        """Do nothing: the permissions of the file system apply."""

    def _job_file(self, job_id: int) -> str:
        return str(self._jobs / f"{job_id}.json")

    def _job_ids(self) -> list[int]:
        return [int(file.stem) for file in self._jobs.glob("[0-9]*.json")]

    def _start_continuous_job(self, job_id: int, body: dict[str, Any]) -> None:
        """Start a run of a continuous job, unless the job is paused or has an active run."""
        if has_active_continuous_trigger(body) and not self.list_runs(job_id, active=True):
            self.start_run(job_id, uuid.uuid4().hex)

    # ── Runs ──────────────────────────────────────────────────────────────────────────────────────────

    def list_runs(self, job_id: int, *, active: bool = False) -> list[Run]:
        """Return the latest runs of a job, or the active ones among them if `active`; the newest run first."""
        newest_first = sorted(self._run_ids(), reverse=True)
        run_ids = [run_id for run_id in newest_first if self._read_submission(run_id).get("job") == job_id]
        runs = [self.get_run(run_id) for run_id in run_ids[:MAX_RUNS]]
        return [run for run in runs if run.is_active] if active else runs

    def get_run(self, run_id: int) -> Run:
        """Return the current state of a run."""
        submission, directory = self._read_submission(run_id), self._runs / str(run_id)
        content = self.read_file(str(directory / submitted_run.RESULT))
        result = json.loads(content) if content else {}
        is_alive = not result and is_locked(directory / submitted_run.ALIVE)
        if result:
            phase, message = "TERMINATED", result["message"]
        elif is_alive:
            phase, message = "RUNNING", ""
        elif time.time() - submission["began"] < submitted_run.START_TIMEOUT_S:
            phase, message = "PENDING", ""
        else:
            phase, message = "INTERNAL_ERROR", f"its process on {submission['host']} died"
        return Run(
            id=run_id,
            phase=phase,
            result=result.get("result", ""),
            message=message,
            began=int(submission["began"] * 1000),
            ended=int(result.get("ended", 0) * 1000),
            url=str(directory),
            paths=tuple(submission["wheels"]),
            tasks=dict.fromkeys((task["task_key"] for task in submission["tasks"]), run_id),
        )

    def start_run(self, job_id: int, token: str) -> int:
        """Start a run of a job's wheel tasks and return its id. A repeated call with the same token starts none."""
        job = self.get_job(job_id)
        if job is None:
            raise DeploymentError(f"job {job_id} does not exist", where=self.name, fix="deploy it again")
        return self.submit_run(job.settings, token, job_id)

    def submit_run(self, body: dict[str, Any], token: str, job_id: int = 0) -> int:
        """Start a run of a job, or of none if `job_id` is 0. A repeated call with the same token does not start one."""
        for run in self.list_runs(job_id):
            if self._read_submission(run.id)["token"] == token:
                return run.id
        run_id = 1 + max(self._run_ids(), default=0)
        directory = self._runs / str(run_id)
        directory.mkdir()
        tasks = [task for task in body["tasks"] if "python_wheel_task" in task]
        libraries = [library for task in tasks for library in task.get("libraries", [])]
        wheels = sorted({library["whl"] for library in libraries if "whl" in library})
        submission = {"job": job_id, "token": token, "began": time.time(), "tasks": tasks, "wheels": wheels}
        submission["host"] = socket.gethostname()
        self.write_file(str(directory / submitted_run.SUBMISSION), _to_json(submission))
        with (directory / submitted_run.LOG).open("wb") as log:
            command = [sys.executable, "-P", submitted_run.__file__, str(directory)]
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            # In its own session, the run outlives this process and its terminal.
            subprocess.Popen(command, **streams, cwd=directory, start_new_session=True)
        return run_id

    def cancel_run(self, run_id: int) -> None:
        """Send SIGTERM to an active run, which then stops between two batches. It must be a process on this machine."""
        if not self.get_run(run_id).is_active:
            return
        host = self._read_submission(run_id)["host"]
        if host != socket.gethostname():
            fix = f"run the same command on {host}"
            raise DeploymentError(f"run {run_id} is a process on {host}", where=self.name, fix=fix)
        with suppress(ProcessLookupError, ValueError):  # it has just ended, or has not written its process id yet
            os.kill(int((self._runs / str(run_id) / submitted_run.ALIVE).read_text()), signal.SIGTERM)

    def read_output(self, run: Run) -> str:
        """Return the output of the run's tasks."""
        return (self._runs / str(run.id) / submitted_run.LOG).read_text(errors="replace")

    def _run_ids(self) -> list[int]:
        return [int(directory.name) for directory in self._runs.glob("[0-9]*")]

    def _read_submission(self, run_id: int) -> dict[str, Any]:
        """Return what `start_run` wrote for a run; an empty dict if the run is just being created."""
        content = self.read_file(str(self._runs / str(run_id) / submitted_run.SUBMISSION))
        return json.loads(content) if content else {}


def _to_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
