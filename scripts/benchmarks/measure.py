"""What a command costs, its whole process tree included: wall time, CPU seconds, memory."""

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
LINGER = 30.0  # seconds that a JVM may outlive its Python


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    wall: float  # seconds from start to the shell's next prompt
    started: float  # of them until the session was up
    cpu: float  # CPU seconds of all processes
    memory: float  # MB: the peaks of all processes that were there together
    others: float  # cores that other processes used meanwhile


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    cpu: float  # of itself and of its children that have ended


def say(line: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave behind, so that it can wait for all of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


@contextmanager
def running(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work, what it says in the log, else among our progress; at the end nothing of it is left."""
    with log.open("ab") if log else nullcontext(sys.stderr) as sink:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for child in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also those whose parent has ended before them
        _reap(LINGER)
        process.returncode = process.returncode if process.returncode is not None else -signal.SIGKILL


def run(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: Path | None = None,
    mark: Path | None = None,
) -> Cost:
    """Runs the command to its end; `mark` is the path whose appearance tells that the session is up."""
    busy = busy_seconds()
    began = time.monotonic()
    with running(command, directory=directory, environment=environment, log=log) as process:
        with _watching(process.pid, mark) as seen:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime + _reap(LINGER)
        whole = time.monotonic() - began
        others = max(0.0, busy_seconds() - busy - cpu) / whole
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{_tail(log)}")
    return Cost(wall, seen.marked - began if seen.marked else 0.0, cpu, seen.memory, others)


def descendants(root: int) -> list[Process]:
    """The process and all below it."""
    table = {process.pid: process for process in _processes()}
    found = {root} & table.keys()
    while True:
        more = {pid for pid, process in table.items() if process.parent in found} - found
        if not more:
            return [table[pid] for pid in found]
        found |= more


def cpu_of(pid: int) -> float:
    """CPU seconds of one process so far."""
    return _parse(Path(f"/proc/{pid}/stat").read_text()).cpu


def busy_seconds() -> float:
    """CPU seconds that this machine has spent since it started."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + sum(interrupts[:2])) / TICK


def until(condition: Callable[[], bool], *, within: float, what: str) -> None:
    """Waits for something, not for ever."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {within:.0f} s in vain: {what}")
        time.sleep(0.05)


@dataclass
class _Seen:
    memory: float = 0.0
    marked: float | None = None


@contextmanager
def _watching(pid: int, mark: Path | None) -> Iterator[_Seen]:
    seen, over = _Seen(), threading.Event()

    def watch() -> None:
        for look in count():
            if over.wait(0.05):
                break
            if seen.marked is None and mark is not None and mark.exists():
                seen.marked = time.monotonic()
            if look % 10 == 0:  # seldom: it costs some milliseconds, and peaks stay to be seen
                seen.memory = max(seen.memory, sum(_peak(process.pid) for process in descendants(pid)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _peak(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _reap(within: float) -> float:
    """Waits for all children, also adopted ones; their CPU seconds."""
    cpu, deadline = 0.0, time.monotonic() + within
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
    fields = line.rpartition(")")[2].split()  # a command's name may hold blanks
    return Process(pid, int(fields[1]), sum(map(int, fields[11:15])) / TICK)


def _tail(log: Path | None) -> str:
    return "" if log is None else "\n".join(log.read_text(errors="replace").splitlines()[-25:])
