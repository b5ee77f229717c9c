"""A run on this machine, for a plain Spark cluster: the tasks of a job, called from the wheels of its release.

Started as a file, with its directory as argument. Nothing of Headrace is imported here: what runs is the release's.
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

ORDER, RESULT, ALIVE, LOG = "order.json", "result.json", "alive", "log.txt"
BEGINNING = 30.0  # seconds in which a run must have taken its lock
LOOK = 0.1
CALL = """
import sys
from importlib.metadata import distribution
package, name = sys.argv[1:3]
points = [point for point in distribution(package).entry_points if point.name == name]
sys.argv = ["job", *sys.argv[3:]]
points[0].load()()
"""


def main(place: Path) -> None:
    """Runs the tasks, each when those that it depends on have ended well, and leaves a result."""
    held = (place / ALIVE).open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    print(os.getpid(), file=held, flush=True)
    order = json.loads((place / ORDER).read_text())
    environment = _environment(place, order["wheels"])
    tasks = {task["task_key"]: task for task in order["tasks"]}
    going: dict[str, subprocess.Popen[bytes]] = {}
    codes: dict[str, int] = {}
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ending.append(number))
    told = False
    while len(codes) < len(tasks):
        for key, process in list(going.items()):
            if process.poll() is not None:
                codes[key] = going.pop(key).returncode
        failed = ending or any(codes.values())
        for key, task in tasks.items():
            needed = [one["task_key"] for one in task.get("depends_on", [])]
            if key in going or key in codes:
                continue
            if failed:
                codes[key] = 0  # it does not begin any more
            elif all(codes.get(one) == 0 for one in needed):
                going[key] = _call(task["python_wheel_task"], environment)
        if failed and not told:
            told = True
            for process in going.values():
                process.terminate()  # which a run takes for: stop at the batch's end
        time.sleep(LOOK)
    broken = sorted(key for key, code in codes.items() if code)
    result = "CANCELED" if ending and not broken else "FAILED" if broken else "SUCCESS"
    message = f"task {broken[0]} ended with code {codes[broken[0]]}" if broken else ""
    _write(place / RESULT, {"result": result, "message": message, "ended": time.time()})


def _environment(place: Path, wheels: list[str]) -> dict[str, str]:
    """The wheels before all else, for this machine's Python and for the cluster's."""
    site, files = place / "site", []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(site)
        shipped = place / f"{Path(wheel).stem}.zip"
        shipped.symlink_to(wheel)
        files.append(str(shipped))
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    submit = f"--py-files {','.join(files)} pyspark-shell" if files else "pyspark-shell"
    return {**os.environ, "PYTHONPATH": path, "PYSPARK_SUBMIT_ARGS": submit, "PYTHONUNBUFFERED": "1"}


def _call(task: dict[str, Any], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    named = [f"--{name}={value}" for name, value in (task.get("named_parameters") or {}).items()]
    arguments = [task["package_name"], task["entry_point"], *named, *(task.get("parameters") or [])]
    return subprocess.Popen([sys.executable, "-P", "-c", CALL, *arguments], env=environment)


def _write(file: Path, told: dict[str, Any]) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(told))
    beside.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
