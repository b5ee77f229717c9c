"""The child process of a task: a session, then the wheel's entry point; started as a file, with the wheels in front.

Nothing of Headrace is imported but from the uploaded wheels: theirs is the code that is tried.
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

GRACE = 10.0  # seconds to end in, when the workspace is gone


def main(order: Path) -> None:
    """Carries out the order, and leaves a result beside it."""
    threading.Thread(target=_end_with_the_workspace, daemon=True).start()
    given = json.loads(order.read_text())
    error, trace = "", ""
    spark: Any = None
    try:
        if Path(given["site"], "headrace").is_dir():
            spark = _session(Path(given["directory"]))
        function = find(given["package"], given["entry_point"], given["site"])
        sys.argv = ["job", *given["arguments"]]
        function()
    except BaseException as raised:  # an exit that is not a return is a failure, SystemExit(0) too
        error, trace = f"{type(raised).__name__}: {raised}", traceback.format_exc()
        print(trace, file=sys.stderr)
    finally:
        Path(given["result"]).write_text(json.dumps({"error": error, "trace": trace}))
    if spark is not None:
        importlib.import_module("headrace.spark.session").close_session(spark)


def find(package: str, name: str, site: str) -> Callable[[], object]:
    """The entry point of that name in the package's metadata, in any group; else the package's own attribute."""
    for distribution in Distribution.discover(name=package, path=[site]):
        for point in distribution.entry_points:
            if point.name == name:
                found: Callable[[], object] = point.load()
                return found
    module = importlib.import_module(package.replace("-", "_"))
    if not hasattr(module, name):
        raise AttributeError(f"package {package!r} has neither an entry point nor a function {name!r}")
    function: Callable[[], object] = getattr(module, name)
    return function


def _session(directory: Path) -> Any:
    """What a cluster brings along: a session that is there before the entry point is called."""
    models = importlib.import_module("headrace.config.models")
    session = importlib.import_module("headrace.spark.session")
    return session.open_session(models.LocalEngine(kind="local", memory="1g"), name="job", directory=directory)


def _end_with_the_workspace() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock a daemon thread must not hold at exit
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
