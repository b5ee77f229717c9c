"""Run the tasks of a job for a plain Spark cluster: as processes on this machine, with the wheels of a release.

This file is executed as a script; its argument is the directory of the run. It imports no module of Headrace, because
the tasks use the Headrace of the release.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

SUBMISSION, RESULT, LOG = "order.json", "result.json", "log.txt"  # files in the directory of the run
ALIVE = "alive"  # a file that this script keeps locked; it contains the process id of the script
START_TIMEOUT_S = 30.0  # a run that has not locked ALIVE after this time has died
POLL_INTERVAL_S = 0.1
# What a task's process executes: it calls the entry point of a package, with the remaining arguments.
CALL_ENTRY_POINT = """
import sys
from importlib.metadata import distribution
package, name = sys.argv[1:3]
points = [point for point in distribution(package).entry_points if point.name == name]
sys.argv = ["job", *sys.argv[3:]]
points[0].load()()
"""


def main(directory: Path) -> None:
    """Run each task after the tasks that it depends on have succeeded, and write the result.

    After a failed task or SIGTERM, start no more tasks and send SIGTERM to the running ones.
    """
    alive = (directory / ALIVE).open("w")
    fcntl.flock(alive, fcntl.LOCK_EX)
    print(os.getpid(), file=alive, flush=True)
    submission = json.loads((directory / SUBMISSION).read_text())
    variables = _extract_wheels(directory, submission["wheels"])
    tasks = {task["task_key"]: task for task in submission["tasks"]}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    exit_codes: dict[str, int] = {}
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    is_sigterm_sent = False
    while len(exit_codes) < len(tasks):
        for key, process in list(processes.items()):
            if process.poll() is not None:
                exit_codes[key] = processes.pop(key).returncode
        is_ending = signals or any(exit_codes.values())
        for key, task in tasks.items():
            is_started = key in processes or key in exit_codes
            if is_started:
                continue
            dependencies = [dependency["task_key"] for dependency in task.get("depends_on", [])]
            if is_ending:
                exit_codes[key] = 0  # the task is skipped
            elif all(exit_codes.get(dependency) == 0 for dependency in dependencies):
                processes[key] = _start_task(task["python_wheel_task"], variables)
        if is_ending and not is_sigterm_sent:
            is_sigterm_sent = True
            for process in processes.values():
                process.terminate()  # a run of Headrace then stops between two batches
        time.sleep(POLL_INTERVAL_S)
    failed = sorted(key for key, code in exit_codes.items() if code)
    if failed:
        result, message = "FAILED", f"task {failed[0]} ended with exit code {exit_codes[failed[0]]}"
    else:
        result, message = "CANCELED" if signals else "SUCCESS", ""
    _write_json(directory / RESULT, {"result": result, "message": message, "ended": time.time()})


def _extract_wheels(directory: Path, wheels: list[str]) -> dict[str, str]:
    """Extract the wheels into the directory of the run, and return the environment variables of its tasks.

    The variables put the wheels first on the Python path of the driver and of the executors.
    """
    site, archives = directory / "site", []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(site)
        archive = directory / f"{Path(wheel).stem}.zip"  # --py-files accepts .zip files, but not .whl files
        archive.symlink_to(wheel)
        archives.append(str(archive))
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    submit = f"--py-files {','.join(archives)} pyspark-shell" if archives else "pyspark-shell"
    return {**os.environ, "PYTHONPATH": path, "PYSPARK_SUBMIT_ARGS": submit, "PYTHONUNBUFFERED": "1"}


def _start_task(task: dict[str, Any], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process with these environment variables that calls the entry point of a wheel task."""
    named_parameters = [f"--{name}={value}" for name, value in (task.get("named_parameters") or {}).items()]
    arguments = [task["package_name"], task["entry_point"], *named_parameters, *(task.get("parameters") or [])]
    return subprocess.Popen([sys.executable, "-P", "-c", CALL_ENTRY_POINT, *arguments], env=variables)


def _write_json(file: Path, value: dict[str, Any]) -> None:
    """Write the file atomically."""
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(value))
    temporary.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
