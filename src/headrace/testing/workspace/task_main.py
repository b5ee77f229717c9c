"""The child process of a task: create a Spark session, then call the wheel's entry point.

This module is started as a script, with the uploaded wheels first on PYTHONPATH. It imports Headrace only from these
wheels, because the code in the wheels is under test.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

GRACE_S = 10.0  # between SIGTERM and SIGKILL, after the workspace has died


def main(task_file: Path) -> None:
    """Run the task that `task_file` describes, and write the result to the file that the task names."""
    threading.Thread(target=_exit_with_workspace, daemon=True).start()
    task = json.loads(task_file.read_text())
    error, trace = "", ""  # empty unless the task fails
    spark: Any = None
    try:
        if Path(task["site"], "headrace").is_dir():  # a task without Headrace needs no session
            spark = _open_session(Path(task["directory"]))
        function = load_entry_point(task["package"], task["entry_point"], task["site"])
        sys.argv = ["job", *task["arguments"]]
        function()
    except BaseException as raised:  # any exit other than a return is a failure, even SystemExit(0)
        error, trace = f"{type(raised).__name__}: {raised}", traceback.format_exc()
        print(trace, file=sys.stderr)
    finally:
        Path(task["result"]).write_text(json.dumps({"error": error, "trace": trace}))
    if spark is not None:
        importlib.import_module("headrace.spark.session").close_session(spark)


def load_entry_point(package: str, name: str, site: str) -> Callable[[], object]:
    """Load the entry point with this name from any group of the package's metadata.

    If the metadata has no such entry point, return the function with this name in the package. `site` is the directory
    with the unpacked wheels.
    """
    for distribution in Distribution.discover(name=package, path=[site]):
        for entry_point in distribution.entry_points:
            if entry_point.name == name:
                loaded: Callable[[], object] = entry_point.load()
                return loaded
    module = importlib.import_module(package.replace("-", "_"))
    if not hasattr(module, name):
        raise AttributeError(f"package {package!r} has neither an entry point nor a function {name!r}")
    function: Callable[[], object] = getattr(module, name)
    return function


def _open_session(directory: Path) -> Any:
    """Open a Spark session. (On a cluster, a session exists before the entry point is called.)"""
    models = importlib.import_module("headrace.config.models")
    session = importlib.import_module("headrace.spark.session")
    return session.open_session(models.LocalEngine(kind="local", memory="1g"), name="job", directory=directory)


def _exit_with_workspace() -> None:
    """Wait until stdin is closed, which means that the workspace has died. Then end this process group."""
    while os.read(0, 1):  # not sys.stdin.read: a daemon thread must not hold the lock of sys.stdin at exit
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
