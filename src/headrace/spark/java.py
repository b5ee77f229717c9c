"""The Java that Spark runs in: which one it is, and how much memory it can have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from headrace.errors import SetupError

VERSIONS = (17, 21)
CGROUPS = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
_FIX = "install Java 17 or 21 and put it on PATH, or set JAVA_HOME to its directory"


def executable() -> Path:
    """The java that Spark will take: JAVA_HOME's, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None and home:
        raise SetupError(f"JAVA_HOME is {home}, and there is no bin/java in it", fix=_FIX)
    if found is None:
        raise SetupError("there is no Java here: JAVA_HOME is not set, and PATH has no java", fix=_FIX)
    return Path(found)


def require() -> str:
    """The version of that Java, like '17.0.15'; a SetupError when Spark cannot run in it."""
    java = executable()
    version = _released(java) or _asked(java)
    if int(version.split(".")[0]) not in VERSIONS:
        needed = " or ".join(map(str, VERSIONS))
        raise SetupError(f"{java} is Java {version}, and Spark needs Java {needed}", fix=_FIX)
    return version


def identity() -> str:
    """Tells one installation of Java from every other, and from itself after an update."""
    java = executable().resolve()
    return f"{java} {java.stat().st_mtime_ns}"


def memory_available() -> int | None:
    """The bytes that a new process can still take, within its container's limit; None when not told."""
    try:
        meminfo = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        free = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit = int((CGROUPS / "memory.max").read_text())
        used = int((CGROUPS / "memory.current").read_text())
        statistics = dict(line.split() for line in (CGROUPS / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no cgroup of version 2, or "max"
        return free
    return max(0, min(free, limit - used + int(statistics.get("inactive_file", 0))))


def require_memory(wanted: str) -> str:
    """What there is for an engine of this memory, like '2g'; a SetupError when that is too little."""
    available = memory_available()
    if available is None:
        return f"{wanted} wanted; this system does not say how much is free"
    if int(wanted[:-1]) * {"m": 1 << 20, "g": 1 << 30}[wanted[-1]] > available:
        raise SetupError(
            f"the engine's memory is {wanted}, and only {available >> 20}m are free here",
            fix="close other programs, or lower engine.memory in the environment's file",
        )
    return f"{wanted} wanted, {available >> 20}m free"


def _released(java: Path) -> str | None:
    # Every Java since 9 says its version in a file beside bin/, which saves starting a JVM (0.1 s).
    release = java.resolve().parent.parent / "release"
    if not release.is_file():
        return None
    match = re.search(r'^JAVA_VERSION="(\d[\d.]*)', release.read_text(errors="replace"), re.MULTILINE)
    return match[1] if match else None


def _asked(java: Path) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise SetupError(f"{java} does not run: {error.strerror}", fix=_FIX) from error
    said = answer.stderr + answer.stdout
    match = re.search(r'version "(\d[\d.]*)', said)
    if match is None:
        first = next((line.strip() for line in said.splitlines() if line.strip()), "it says nothing")
        raise SetupError(f"{java} does not tell its version: {first}", fix=_FIX)
    return match[1]
