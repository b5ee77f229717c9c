"""Headrace as a user starts it: a process of its own, looked at from outside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace_shop.sample import make_sample

ROOT = Path(__file__).parents[1]
PATIENCE = 180
BUILT_OF = ("src", "conf", "resources", "databricks.yml", "pyproject.toml", "README.md", "LICENSE", "runtime.lock")


def copy_bundle(to: Path, **sample: object) -> Path:
    """The reference bundle's files in a directory of its own, with sample data."""
    shutil.copytree(ROOT / "conf", to / "conf")
    shutil.copytree(ROOT / "resources", to / "resources")
    shutil.copy(ROOT / "databricks.yml", to)
    if sample:
        make_sample(to / "data", **sample)  # type: ignore[arg-type]
    return to


def copy_tree(to: Path) -> Path:
    """All that a release of the reference bundle is built of, in a directory of its own."""
    for part in BUILT_OF:
        source, target = ROOT / part, to / part
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    return to


@contextmanager
def headrace(*arguments: str, bundle: Path) -> Iterator[subprocess.Popen[str]]:
    """A running `headrace` in its own process group; killed at the end if it is still there."""
    command = [sys.executable, "-m", "headrace", *arguments]
    with (bundle / "output.txt").open("a") as output:
        process = subprocess.Popen(command, cwd=bundle, stdout=output, stderr=output, text=True, start_new_session=True)
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL to Python and JVM alike: a machine that loses power asks neither."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
    wait_until(lambda: not _alive(process.pid), "the process group to be gone")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits for the condition, and fails with its name when it does not come true."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, f"waited {PATIENCE} s for {what}"
        time.sleep(0.1)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
