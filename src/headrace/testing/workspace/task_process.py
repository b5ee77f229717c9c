"""A task at work: a child process that runs the uploaded wheel's entry point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.job_run import Run
from headrace.testing.workspace.task_environment import Places

CHILD = Path(__file__).with_name("task.py")
FAILED = "Workload failed, see run output for details"


class Child:
    """The process of one task, from its start to its end; whoever serves the workspace and dies takes it along."""

    def __init__(self, run: Run, key: str, run_id: int, places: Places) -> None:
        definition = run.definition(key)
        self._gone = False
        directory = places.of(run_id)
        site = directory / "site"
        places.install(_wheels(run, definition), site)
        self._result = directory / "result.json"
        order = directory / "task.json"
        wheel: Document = definition["python_wheel_task"]
        named = {**(wheel.get("named_parameters") or {}), **run.overrides.get("python_named_params", {})}
        listed = run.overrides.get("python_params") or wheel.get("parameters") or []
        order.write_text(
            json.dumps(
                {
                    "package": wheel["package_name"],
                    "entry_point": wheel["entry_point"],
                    "arguments": [
                        *(f"--{name}={value}" for name, value in places.parameters(named, directory).items()),
                        *places.texts(listed),
                    ],
                    "site": str(site),
                    "directory": str(directory),
                    "result": str(self._result),
                }
            )
        )
        with places.log(run_id).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(CHILD), str(order)],
                stdin=subprocess.PIPE,  # its end tells the child that this process is gone
                stdout=log,
                stderr=log,
                cwd=directory,
                env=_environment(site, _cluster(run, definition)),
                start_new_session=True,
            )

    def ended(self) -> bool:
        """Whether it is gone; with it goes all that it has started."""
        if self._gone or self._process.poll() is None:
            return self._gone
        self.kill()
        return True

    def terminate(self) -> None:
        """Asks it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """Ends it and what it has started."""
        if self._gone:
            return  # its number may be another's by now
        self._gone = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def failure(self) -> tuple[str, str] | None:
        """The error and its trace; None when the entry point has returned."""
        if not self._result.exists():
            return f"The process ended with code {self._process.returncode} and left no result", ""
        result = json.loads(self._result.read_text())
        return (result["error"], result["trace"]) if result["error"] else None


def _wheels(run: Run, definition: Document) -> list[str]:
    """The wheels among the task's libraries, or among the dependencies of its environment."""
    given = [library.get("whl", "") for library in definition.get("libraries") or []]
    for environment in run.settings.get("environments") or []:
        if environment["environment_key"] == definition.get("environment_key"):
            given += (environment.get("spec") or {}).get("dependencies") or []
    return [library for library in given if library.endswith(".whl")]


def _cluster(run: Run, definition: Document) -> Document:
    for cluster in run.settings.get("job_clusters") or []:
        if cluster["job_cluster_key"] == definition.get("job_cluster_key"):
            return dict(cluster.get("new_cluster") or {})
    return dict(definition.get("new_cluster") or {})


def _environment(site: Path, cluster: Document) -> dict[str, str]:
    """This process's environment, with the wheels before all else, and without a coverage that counts other code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    path = os.pathsep.join([str(site), *filter(None, [kept.get("PYTHONPATH")])])
    given = {name: str(value) for name, value in (cluster.get("spark_env_vars") or {}).items()}
    return {**kept, **given, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "DATABRICKS_RUNTIME_VERSION": "local"}
