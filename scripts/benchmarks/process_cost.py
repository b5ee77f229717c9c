"""Measure what a command costs, including its child processes: wall time, CPU time and memory."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICK = os.sysconf("SC_CLK_TCK")
JVM_EXIT_TIMEOUT_S = 30.0  # how long a JVM may outlive its Python process


@dataclass(frozen=True)
class Cost:
    """The cost of one run."""

    wall: float  # seconds from start to exit
    started: float  # seconds until the session was ready
    cpu: float  # CPU seconds of all processes
    memory: float  # MB: the sum of the peaks of concurrent processes
    others: float  # cores that other processes used during the run


@dataclass(frozen=True)
class Process:
    """One entry of the process table."""

    pid: int
    parent: int
    cpu: float  # seconds, including children that have ended


def print_progress(line: str) -> None:
    """Print a line with the time to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans, so that it can wait for all of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


@contextmanager
def running(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command, with its output in the log or on stderr. Kill all of its processes at the end."""
    with log.open("ab") if log else nullcontext(sys.stderr) as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for child in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # includes processes whose parent has ended
        _reap(JVM_EXIT_TIMEOUT_S)
        process.returncode = process.returncode if process.returncode is not None else -signal.SIGKILL


def run(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: Path | None = None,
    marker: Path | None = None,
) -> Cost:
    """Run the command and return its cost. The session is ready when the path `marker` exists."""
    busy = busy_seconds()
    started_at = time.monotonic()
    with running(command, directory=directory, environment=environment, log=log) as process:
        with _monitor(process.pid, marker) as observations:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - started_at
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime + _reap(JVM_EXIT_TIMEOUT_S)
        duration = time.monotonic() - started_at
        others = max(0.0, busy_seconds() - busy - cpu) / duration
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexited with {process.returncode}:\n{_tail(log)}")
    started = observations.marker_at - started_at if observations.marker_at else 0.0
    return Cost(wall, started, cpu, observations.memory, others)


def descendants(root: int) -> list[Process]:
    """Return the process and all of its descendants."""
    table = {process.pid: process for process in _processes()}
    pids = {root} & table.keys()
    while True:
        children = {pid for pid, process in table.items() if process.parent in pids} - pids
        if not children:
            return [table[pid] for pid in pids]
        pids |= children


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that one process has used."""
    return _parse(Path(f"/proc/{pid}/stat").read_text()).cpu


def busy_seconds() -> float:
    """Return the CPU seconds that this machine has used since it booted."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + sum(interrupts[:2])) / TICK


def wait_until(condition: Callable[[], bool], *, timeout: float, what: str) -> None:
    """Wait until the condition is true; exit with an error after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(0.05)


@dataclass
class _Observations:
    memory: float = 0.0
    marker_at: float | None = None


@contextmanager
def _monitor(pid: int, marker: Path | None) -> Iterator[_Observations]:
    observations, stopped = _Observations(), threading.Event()

    def poll() -> None:
        for poll_number in count():
            if stopped.wait(0.05):
                break
            if observations.marker_at is None and marker is not None and marker.exists():
                observations.marker_at = time.monotonic()
            if poll_number % 10 == 0:  # rarely: it takes some milliseconds, and the kernel keeps each process's peak
                memory = sum(_peak(process.pid) for process in descendants(pid))
                observations.memory = max(observations.memory, memory)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield observations
    finally:
        stopped.set()
        thread.join()


def _peak(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _reap(timeout: float) -> float:
    """Wait for all children, including adopted ones, and return their CPU seconds."""
    cpu, deadline = 0.0, time.monotonic() + timeout
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu
        if pid:
            cpu += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > deadline:
            return cpu
        else:
            time.sleep(0.02)


def _processes() -> Iterator[Process]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield _parse((entry / "stat").read_text())


def _parse(line: str) -> Process:
    pid = int(line.split(maxsplit=1)[0])
    fields = line.rpartition(")")[2].split()  # the command's name may contain spaces
    return Process(pid, int(fields[1]), sum(map(int, fields[11:15])) / TICK)


def _tail(log: Path | None) -> str:
    return "" if log is None else "\n".join(log.read_text(errors="replace").splitlines()[-25:])
