"""Find the Java installation that Spark runs on, and check its version and the available memory."""

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
    """Return the `java` command that Spark will start: that of JAVA_HOME if it is set, otherwise that on PATH.

    Raise SetupError if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None and home:
        raise SetupError(f"JAVA_HOME is {home}, which has no bin/java", fix=_FIX)
    if path is None:
        raise SetupError("Java is not installed: JAVA_HOME is not set, and PATH has no java", fix=_FIX)
    return Path(path)


def require() -> str:
    """Return the version of `executable()`, like '17.0.15'; raise SetupError if Spark does not support it."""
    java = executable()
    version = _version_in_release_file(java) or _version_from_command(java)
    if int(version.split(".")[0]) not in VERSIONS:
        needed = " or ".join(map(str, VERSIONS))
        raise SetupError(f"{java} is Java {version}, but Spark needs Java {needed}", fix=_FIX)
    return version


def identity() -> str:
    """Return a text that is different for each Java installation, and changes when the installation is updated."""
    java = executable().resolve()
    return f"{java} {java.stat().st_mtime_ns}"


def memory_available() -> int | None:
    """Return the bytes available to a new process within its container's limit; None if unknown."""
    try:
        meminfo = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        free = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit = int((CGROUPS / "memory.max").read_text())
        used = int((CGROUPS / "memory.current").read_text())
        statistics = dict(line.split() for line in (CGROUPS / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no cgroup v2, or no limit ("max")
        return free
    reclaimable = int(statistics.get("inactive_file", 0))  # counted as used, but the kernel frees it when needed
    return max(0, min(free, limit - used + reclaimable))


def require_memory(memory: str) -> str:
    """Return the required and the available memory as text; raise SetupError if less than `memory` is available.

    `memory` is a number of megabytes or gigabytes, like '512m' or '2g'. If the available memory is unknown, assume that
    it suffices.
    """
    available = memory_available()
    if available is None:
        return f"{memory} needed; free memory is unknown on this system"
    if int(memory[:-1]) * {"m": 1 << 20, "g": 1 << 30}[memory[-1]] > available:
        raise SetupError(
            f"the engine needs {memory} of memory, but only {available >> 20}m are free",
            fix="close other programs, or lower engine.memory in the environment's file",
        )
    return f"{memory} needed, {available >> 20}m free"


def _version_in_release_file(java: Path) -> str | None:
    # Since Java 9, an installation has its version in a file beside bin/. Reading the file is 0.1 s faster than
    # starting a JVM.
    release = java.resolve().parent.parent / "release"
    if not release.is_file():
        return None
    match = re.search(r'^JAVA_VERSION="(\d[\d.]*)', release.read_text(errors="replace"), re.MULTILINE)
    return match[1] if match else None


def _version_from_command(java: Path) -> str:
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise SetupError(f"{java} cannot be run: {error.strerror}", fix=_FIX) from error
    output = result.stderr + result.stdout
    match = re.search(r'version "(\d[\d.]*)', output)
    if match is None:
        first_line = next((line.strip() for line in output.splitlines() if line.strip()), "no output")
        raise SetupError(f"`{java} -version` does not print a version: {first_line}", fix=_FIX)
    return match[1]
