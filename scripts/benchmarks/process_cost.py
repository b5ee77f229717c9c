"""Measure the cost of a command and its child processes: wall time, CPU time and memory."""

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

PR_SET_CHILD_SUBREAPER = 36  # option of prctl(2)
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")  # the unit of CPU time in /proc
POLL_INTERVAL_S = 0.05
POLLS_PER_MEMORY_READING = 10
JVM_EXIT_TIMEOUT_S = 30.0  # how long a JVM may outlive its Python process


@dataclass(frozen=True)
class Cost:
    """The cost of one run."""

    wall_s: float  # from start to exit
    session_ready_s: float  # from start until the session was ready
    cpu_s: float  # of all processes of the command
    memory_mb: float  # the largest sum of the peaks of the processes that existed at the same time
    other_cores: float  # average number of cores that other processes used during the run


@dataclass(frozen=True)
class Process:
    """One entry of the process table."""

    pid: int
    parent_pid: int
    cpu_s: float  # including children that have ended


def print_progress(line: str) -> None:
    """Print the time and a line to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose parent ends, so that it can wait for all of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


@contextmanager
def running(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command and yield its process. Kill the process and its descendants at the end.

    The output is appended to `log`, or printed to stderr if `log` is None.
    """
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
            os.killpg(process.pid, signal.SIGKILL)  # also ends processes whose parent has ended
        _reap(JVM_EXIT_TIMEOUT_S)
        if process.returncode is None:  # `_reap` has waited for the process, so Popen cannot
            process.returncode = -signal.SIGKILL


def run(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: Path | None = None,
    marker: Path | None = None,
) -> Cost:
    """Run the command and return its cost; exit with an error if the command fails.

    The command's session counts as ready when the path `marker` exists.
    """
    busy_before_s = busy_seconds()
    started_at = time.monotonic()
    with running(command, directory=directory, environment=environment, log=log) as process:
        with _monitor(process.pid, marker) as observations:
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.monotonic() - started_at
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_s = usage.ru_utime + usage.ru_stime + _reap(JVM_EXIT_TIMEOUT_S)
        duration_s = time.monotonic() - started_at
        other_cores = max(0.0, busy_seconds() - busy_before_s - cpu_s) / duration_s
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexited with {process.returncode}:\n{_tail(log)}")
    session_ready_s = observations.marker_at - started_at if observations.marker_at else 0.0
    return Cost(wall_s, session_ready_s, cpu_s, observations.memory_mb, other_cores)


def descendants(root: int) -> list[Process]:
    """Return the process `root`, if it exists, and all of its descendants."""
    table = {process.pid: process for process in _processes()}
    pids = {root} & table.keys()
    while True:
        children = {pid for pid, process in table.items() if process.parent_pid in pids} - pids
        if not children:
            return [table[pid] for pid in pids]
        pids |= children


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that one process has used."""
    return _parse(Path(f"/proc/{pid}/stat").read_text()).cpu_s


def busy_seconds() -> float:
    """Return the CPU seconds that all processes of this machine have used since it booted."""
    user, nice, system, _, _, irq, softirq, _ = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def wait_until(condition: Callable[[], bool], *, timeout: float, what: str) -> None:
    """Wait until the condition is true; exit with an error after `timeout` seconds. `what` is for the error message."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(POLL_INTERVAL_S)


@dataclass
class _Observations:
    memory_mb: float = 0.0
    marker_at: float | None = None  # time.monotonic() when the marker was first seen


@contextmanager
def _monitor(pid: int, marker: Path | None) -> Iterator[_Observations]:
    """Observe a process and its descendants in a thread until the end of the block."""
    observations, stopped = _Observations(), threading.Event()

    def poll() -> None:
        for poll_number in count():
            if stopped.wait(POLL_INTERVAL_S):
                break
            if observations.marker_at is None and marker is not None and marker.exists():
                observations.marker_at = time.monotonic()
            # Reading the memory takes some milliseconds. Few readings are enough, because the kernel keeps each peak.
            if poll_number % POLLS_PER_MEMORY_READING == 0:
                memory_mb = sum(_peak_mb(process.pid) for process in descendants(pid))
                observations.memory_mb = max(observations.memory_mb, memory_mb)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield observations
    finally:
        stopped.set()
        thread.join()


def _peak_mb(pid: int) -> float:
    """Return the peak of a process's resident memory, or 0 if the process has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _reap(timeout: float) -> float:
    """Wait up to `timeout` seconds for all children, including adopted ones, and return their CPU seconds."""
    cpu_s, deadline = 0.0, time.monotonic() + timeout
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu_s
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > deadline:
            return cpu_s
        else:
            time.sleep(0.02)


def _processes() -> Iterator[Process]:
    """Yield all processes of the machine."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield _parse((entry / "stat").read_text())


def _parse(line: str) -> Process:
    """Parse the content of /proc/PID/stat."""
    pid = int(line.split(maxsplit=1)[0])
    fields = line.rpartition(")")[2].split()  # the fields after the command's name, which may contain spaces
    cpu_ticks = map(int, fields[11:15])  # user and system time, of the process and of its ended children
    return Process(pid, int(fields[1]), sum(cpu_ticks) / TICKS_PER_SECOND)


def _tail(log: Path | None) -> str:
    """Return the last lines of the log, or an empty string without a log."""
    return "" if log is None else "\n".join(log.read_text(errors="replace").splitlines()[-25:])
