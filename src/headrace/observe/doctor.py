"""Looks at a machine before a run does: each finding is good, or says how to mend it."""

from __future__ import annotations

import codecs
import locale
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headrace.config.models import DatabricksEngine, Environment, LocalEngine, local_path
from headrace.errors import SetupError
from headrace.spark import jars, java

PYTHON = (3, 11)
ROOM = 1 << 30
WORKSPACE = (
    "DATABRICKS_HOST",
    "DATABRICKS_TOKEN",
    "DATABRICKS_CLIENT_ID",
    "DATABRICKS_CLIENT_SECRET",
    "DATABRICKS_CONFIG_PROFILE",
)


@dataclass(frozen=True)
class Finding:
    """One line of the answer; `fix` is empty when there is nothing to mend."""

    name: str
    ok: bool
    finding: str
    fix: str = ""


def examine(environment: Environment | None) -> tuple[Finding, ...]:
    """Everything that a run in this environment needs of the machine; without one, of a local run."""
    return tuple(_look_at(name, look) for name, look in _looks(environment))


def _look_at(name: str, look: Callable[[], str]) -> Finding:
    """What one look found: its words, or its SetupError as something to mend."""
    try:
        return Finding(name, True, look())
    except SetupError as error:
        return Finding(name, False, error.problems[0].message, error.problems[0].fix)


def _looks(environment: Environment | None) -> Iterator[tuple[str, Callable[[], str]]]:
    engine = environment.engine if environment else LocalEngine(kind="local")
    yield "python", _python
    if not isinstance(engine, DatabricksEngine):
        yield "encoding", _encoding
        yield "java", lambda: f"{java.require()} ({java.executable()})"
        yield "spark", _spark
        yield "jars", _jars
        yield "loopback", _loopback
    if isinstance(engine, LocalEngine):
        yield "memory", lambda: java.require_memory(engine.memory)
        yield "cores", lambda: _cores(engine.cores)
    if environment and not isinstance(engine, DatabricksEngine):
        places = {"tables": environment.tables.root, "checkpoints": environment.checkpoints}
        for name, place in places.items():
            if path := local_path(place or ""):
                yield name, partial(_room, Path(path))
    on_databricks = isinstance(engine, DatabricksEngine)
    if on_databricks:
        yield "databricks-sdk", _sdk
    yield "workspace", partial(_workspace, needed=on_databricks)


def _python() -> str:
    if sys.version_info[:2] < PYTHON:
        needed = ".".join(map(str, PYTHON))
        raise SetupError(
            f"this is Python {platform.python_version()}, and Headrace needs {needed} or newer",
            fix=f"install Python {needed} and make a virtual environment with it",
        )
    return f"{platform.python_version()} ({sys.executable})"


def _encoding() -> str:
    encoding = codecs.lookup(locale.getencoding()).name
    if encoding != "utf-8":
        raise SetupError(
            f"the locale's encoding is {encoding}: Java cannot open files with other letters in their names",
            fix="unset LC_ALL, or set it to C.UTF-8",
        )
    return encoding


def _spark() -> str:
    try:
        spark, delta = version("pyspark"), version("delta-spark")
    except PackageNotFoundError as error:
        raise SetupError(f"{error.name} is not installed", fix="pip install 'headrace[local]'") from error
    lock = jars.locked(jars.spark_lock(spark))
    needed = next(jar.coordinates.split(":")[2] for jar in lock if ":delta-spark_" in jar.coordinates)
    if delta != needed:
        raise SetupError(
            f"delta-spark is {delta}, and its jars for Spark {spark} are {needed}",
            fix=f"pip install 'delta-spark=={needed}'",
        )
    return f"pyspark {spark}, delta-spark {delta}"


def _jars() -> str:
    try:
        name = jars.spark_lock(version("pyspark"))
    except PackageNotFoundError as error:
        raise SetupError("pyspark is not installed", fix="pip install 'headrace[local]'") from error
    absent = jars.missing(name)
    if not absent:
        return f"{len(jars.locked(name))} in {jars.cache()}"
    if not os.access(_nearest(jars.cache()), os.W_OK):
        raise SetupError(
            f"{len(absent)} jars are to be fetched, and {jars.cache()} cannot be written",
            fix="set HEADRACE_CACHE to a directory that you may write to",
        )
    return f"{len(absent)} ({jars.megabytes(absent)}) will be fetched into {jars.cache()} by the first run"


def _loopback() -> str:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), 5),
        ):
            return "127.0.0.1 answers"
    except OSError as error:
        raise SetupError(
            f"no port on 127.0.0.1 can be opened and reached: {error.strerror or error}",
            fix="let this user bind and connect on 127.0.0.1 (sandbox or firewall)",
        ) from error


def _cores(wanted: int) -> str:
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted > present:
        raise SetupError(
            f"the engine's cores are {wanted}, and this process has {present}",
            fix=f"set engine.cores to {present} in the environment's file",
        )
    return f"{wanted} wanted, {present} here"


def _room(place: Path) -> str:
    there = _nearest(place)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise SetupError(
            f"{place} cannot be written: {there} is not a directory of yours",
            fix="change its owner or permissions, or name another place in the environment's file",
        )
    free = shutil.disk_usage(there).free
    if free < ROOM:
        raise SetupError(f"{place} has {free >> 20} MB of free disk", fix=f"free at least {ROOM >> 30} GB there")
    return f"{place}: writable, {free >> 30} GB free"


def _workspace(*, needed: bool) -> str:
    """Which variables are set: never what they hold."""
    present = [name for name in WORKSPACE if os.environ.get(name)]
    if present or not needed:
        return f"{', '.join(present)} set" if present else "no DATABRICKS_… variable is set: local work needs none"
    profiles = Path(os.environ.get("DATABRICKS_CONFIG_FILE") or Path.home() / ".databrickscfg")
    if not profiles.is_file():
        raise SetupError(
            f"there is no login to a workspace: no DATABRICKS_… variable is set, and {profiles} is not there",
            fix="set DATABRICKS_HOST and DATABRICKS_TOKEN, or write profiles into that file",
        )
    return f"profiles in {profiles}"


def _sdk() -> str:
    try:
        return version("databricks-sdk")
    except PackageNotFoundError as error:
        raise SetupError("databricks-sdk is not installed", fix="pip install 'headrace[deploy]'") from error


def _nearest(place: Path) -> Path:
    # Path.exists raises where nobody may look, until Python 3.14.
    return next(parent for parent in (place, *place.absolute().parents) if os.path.exists(parent))  # noqa: PTH110
