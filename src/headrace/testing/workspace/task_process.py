"""The child process of a task, which runs the entry point of an uploaded wheel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.job_run import Run
from headrace.testing.workspace.task_environment import TaskEnvironment

TASK_MAIN = Path(__file__).with_name("task_main.py")


class TaskFailure(NamedTuple):
    """The error of a failed task and its traceback, which is empty if the process did not write its result file."""

    error: str
    trace: str = ""


class TaskProcess:
    """The child process of one task; it also ends when the workspace's own process dies."""

    def __init__(self, run: Run, key: str, run_id: int, environment: TaskEnvironment) -> None:
        definition = run.task_definition(key)
        self._has_ended = False
        directory = environment.run_directory(run_id)
        site = directory / "site"  # for the unpacked wheels, like site-packages
        environment.install_wheels(_wheels(run, definition), site)
        self._result_file = directory / "result.json"
        task_file = directory / "task.json"
        wheel_task: Document = definition["python_wheel_task"]
        named = {**(wheel_task.get("named_parameters") or {}), **run.overrides.get("python_named_params", {})}
        local_named = environment.local_parameters(named, directory)
        positional = run.overrides.get("python_params") or wheel_task.get("parameters") or []
        task_file.write_text(
            json.dumps(
                {
                    "package": wheel_task["package_name"],
                    "entry_point": wheel_task["entry_point"],
                    "arguments": [
                        *(f"--{name}={value}" for name, value in local_named.items()),
                        *environment.local_arguments(positional),
                    ],
                    "site": str(site),
                    "directory": str(directory),
                    "result": str(self._result_file),
                }
            )
        )
        with environment.log_file(run_id).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(TASK_MAIN), str(task_file)],
                stdin=subprocess.PIPE,  # when this process dies, the pipe is closed and the child ends itself
                stdout=log,
                stderr=log,
                cwd=directory,
                env=_environment_variables(site, _cluster(run, definition)),
                start_new_session=True,
            )

    def clean_up_if_ended(self) -> bool:
        """Return whether the process has ended; if it has, kill the processes that it started."""
        if not self._has_ended and self._process.poll() is not None:
            self.kill()
        return self._has_ended

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill the process and all processes that it started."""
        if self._has_ended:
            return  # another process may have its pid by now
        self._has_ended = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def failure(self) -> TaskFailure | None:
        """Return why the ended process failed, or None if the entry point has returned."""
        if not self._result_file.exists():
            return TaskFailure(f"The process ended with code {self._process.returncode} and left no result")
        result = json.loads(self._result_file.read_text())
        return TaskFailure(result["error"], result["trace"]) if result["error"] else None


def _wheels(run: Run, definition: Document) -> list[str]:
    """Return the paths of the wheels in the task's libraries and in the dependencies of its environment."""
    libraries = [library.get("whl", "") for library in definition.get("libraries") or []]
    for environment in run.settings.get("environments") or []:
        if environment["environment_key"] == definition.get("environment_key"):
            libraries += (environment.get("spec") or {}).get("dependencies") or []
    return [library for library in libraries if library.endswith(".whl")]


def _cluster(run: Run, definition: Document) -> Document:
    """Return the `new_cluster` of the task or of its job cluster; empty if the task has neither."""
    for cluster in run.settings.get("job_clusters") or []:
        if cluster["job_cluster_key"] == definition.get("job_cluster_key"):
            return dict(cluster.get("new_cluster") or {})
    return dict(definition.get("new_cluster") or {})


def _environment_variables(site: Path, cluster: Document) -> dict[str, str]:
    """Return the variables of this process and of the cluster, with `site` first on PYTHONPATH.

    Variables of coverage.py are left out, because the coverage of the task's code is not measured.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    path = os.pathsep.join([str(site), *filter(None, [inherited.get("PYTHONPATH")])])
    configured = {name: str(value) for name, value in (cluster.get("spark_env_vars") or {}).items()}
    return {
        **inherited,
        **configured,
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "DATABRICKS_RUNTIME_VERSION": "local",  # libraries detect Databricks by this variable
    }
