"""Run `headrace` in a separate process, as a user does."""

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
TIMEOUT_S = 180
RELEASE_SOURCES = (
    "src",
    "conf",
    "resources",
    "databricks.yml",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "runtime.lock",
)


def copy_bundle(to: Path, **sample: object) -> Path:
    """Copy the files of the reference bundle, and generate sample data with the arguments of make_sample, if any."""
    shutil.copytree(ROOT / "conf", to / "conf")
    shutil.copytree(ROOT / "resources", to / "resources")
    shutil.copy(ROOT / "databricks.yml", to)
    if sample:
        make_sample(to / "data", **sample)  # type: ignore[arg-type]
    return to


def copy_tree(to: Path) -> Path:
    """Copy all files that a release of the reference bundle is built from."""
    for part in RELEASE_SOURCES:
        source, target = ROOT / part, to / part
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    return to


@contextmanager
def headrace(*arguments: str, bundle: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `headrace` in its own process group, and kill the group at the end."""
    command = [sys.executable, "-m", "headrace", *arguments]
    with (bundle / "output.txt").open("a") as output:
        process = subprocess.Popen(command, cwd=bundle, stdout=output, stderr=output, text=True, start_new_session=True)
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill Python and the JVM with SIGKILL, as if the machine had lost power, and wait until they have ended."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
    wait_until(lambda: not group_exists(process.pid), "the process group to end")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until the condition is true; fail after TIMEOUT_S seconds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {TIMEOUT_S} s for {what}"
        time.sleep(0.1)


def group_exists(group: int) -> bool:
    """Return whether a process of the group exists."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


LOCK = """
import fcntl, os, sys
file = open(sys.argv[1], "r+" if os.path.exists(sys.argv[1]) else "w+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("locked out", flush=True)
    sys.exit()
file.truncate(0)
print(f"process {os.getpid()}", file=file, flush=True)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def lock_in_other_process(directory):
    """Start another process that tries to lock the file. Yield the process, and its output: locked or locked out."""
    command = [sys.executable, "-c", LOCK, str(directory / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, process.stdout.readline().strip()
        process.stdin.close()
