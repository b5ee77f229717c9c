"""Check that this machine has what a run needs. Each check has a finding, which is ok or has a fix."""

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

MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 1 << 30  # 1 GB
WORKSPACE_VARIABLES = (
    "DATABRICKS_HOST",
    "DATABRICKS_TOKEN",
    "DATABRICKS_CLIENT_ID",
    "DATABRICKS_CLIENT_SECRET",
    "DATABRICKS_CONFIG_PROFILE",
)


@dataclass(frozen=True)
class Finding:
    """The result of one check. `finding` describes it; `fix` is empty if `ok` is true."""

    name: str
    ok: bool
    finding: str
    fix: str = ""


def examine(environment: Environment | None) -> tuple[Finding, ...]:
    """Check everything that a run in this environment needs.

    If `environment` is None, check what a local run with default settings needs.
    """
    return tuple(_run_check(name, check) for name, check in _checks(environment))


def _run_check(name: str, check: Callable[[], str]) -> Finding:
    """Run the check. Return its text as an ok finding, or the SetupError that it raises as a finding with a fix."""
    try:
        return Finding(name, True, check())
    except SetupError as error:
        return Finding(name, False, error.problems[0].message, error.problems[0].fix)


def _checks(environment: Environment | None) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name and the function of each check. The function returns a description if all is well.

    Otherwise it raises SetupError.
    """
    engine = environment.engine if environment else LocalEngine(kind="local")
    on_databricks = isinstance(engine, DatabricksEngine)
    yield "python", _python
    if not on_databricks:
        yield "encoding", _encoding
        yield "java", lambda: f"{java.require()} ({java.executable()})"
        yield "spark", _spark
        yield "jars", _jars
        yield "loopback", _loopback
    if isinstance(engine, LocalEngine):
        yield "memory", lambda: java.require_memory(engine.memory)
        yield "cores", lambda: _cores(engine.cores)
    if environment and not on_databricks:
        urls = {"tables": environment.tables.root, "checkpoints": environment.checkpoints}
        for name, url in urls.items():
            if path := local_path(url or ""):
                yield name, partial(_disk, Path(path))
    if on_databricks:
        yield "databricks-sdk", _sdk
    yield "workspace", partial(_workspace, is_login_needed=on_databricks)


def _python() -> str:
    if sys.version_info[:2] < MIN_PYTHON:
        needed = ".".join(map(str, MIN_PYTHON))
        raise SetupError(
            f"this is Python {platform.python_version()}, but Headrace needs {needed} or newer",
            fix=f"install Python {needed} and create a virtual environment with it",
        )
    return f"{platform.python_version()} ({sys.executable})"


def _encoding() -> str:
    encoding = codecs.lookup(locale.getencoding()).name
    if encoding != "utf-8":
        raise SetupError(
            f"the locale's encoding is {encoding}: Java cannot open files with non-{encoding} characters in the name",
            fix="unset LC_ALL, or set it to C.UTF-8",
        )
    return encoding


def _spark() -> str:
    try:
        spark, delta = version("pyspark"), version("delta-spark")
    except PackageNotFoundError as error:
        raise SetupError(f"{error.name} is not installed", fix="pip install 'headrace[local]'") from error
    needed_delta = jars.delta_version(jars.spark_lock(spark))
    if delta != needed_delta:
        raise SetupError(
            f"delta-spark is {delta}, but the Delta jars for Spark {spark} are {needed_delta}",
            fix=f"pip install 'delta-spark=={needed_delta}'",
        )
    return f"pyspark {spark}, delta-spark {delta}"


def _jars() -> str:
    try:
        lock_name = jars.spark_lock(version("pyspark"))
    except PackageNotFoundError as error:
        raise SetupError("pyspark is not installed", fix="pip install 'headrace[local]'") from error
    missing = jars.missing(lock_name)
    if not missing:
        return f"{len(jars.locked(lock_name))} jars in {jars.cache()}"
    if not os.access(_nearest_existing_path(jars.cache()), os.W_OK):
        raise SetupError(
            f"{len(missing)} jars have to be downloaded, but {jars.cache()} is not writable",
            fix="set HEADRACE_CACHE to a writable directory",
        )
    return f"the first run will download {len(missing)} jars ({jars.megabytes(missing)}) into {jars.cache()}"


def _loopback() -> str:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), 5),
        ):
            return "127.0.0.1 accepts connections"
    except OSError as error:
        raise SetupError(
            f"cannot open a port on 127.0.0.1 and connect to it: {error.strerror or error}",
            fix="allow this user to bind and connect on 127.0.0.1 (check the sandbox or the firewall)",
        ) from error


def _cores(cores: int) -> str:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores > available:
        raise SetupError(
            f"engine.cores is {cores}, but only {available} are available to this process",
            fix=f"set engine.cores to {available} in the environment's file",
        )
    return f"{cores} configured, {available} available"


def _disk(path: Path) -> str:
    existing = _nearest_existing_path(path)
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise SetupError(
            f"cannot write {path}: {existing} is not a writable directory",
            fix="change its owner or permissions, or set another path in the environment's file",
        )
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise SetupError(
            f"the disk of {path} has {free >> 20} MB free", fix=f"free at least {MIN_FREE_BYTES >> 30} GB on this disk"
        )
    return f"{path}: writable, {free >> 30} GB free"


def _workspace(*, is_login_needed: bool) -> str:
    """Return where a login to a workspace is defined: the names of the variables that are set, or a file of profiles.

    The values of the variables are not returned, because they may be secret.
    """
    defined = [name for name in WORKSPACE_VARIABLES if os.environ.get(name)]
    if defined:
        return f"{', '.join(defined)} set"
    if not is_login_needed:
        return "no DATABRICKS_… variable is set; a local run needs none"
    profiles_file = Path(os.environ.get("DATABRICKS_CONFIG_FILE") or Path.home() / ".databrickscfg")
    if not profiles_file.is_file():
        raise SetupError(
            f"no login to a workspace: no DATABRICKS_… variable is set, and {profiles_file} does not exist",
            fix="set DATABRICKS_HOST and DATABRICKS_TOKEN, or add a profile to that file",
        )
    return f"profiles in {profiles_file}"


def _sdk() -> str:
    try:
        return version("databricks-sdk")
    except PackageNotFoundError as error:
        raise SetupError("databricks-sdk is not installed", fix="pip install 'headrace[deploy]'") from error


def _nearest_existing_path(path: Path) -> Path:
    """Return the path if it exists, otherwise its nearest parent that exists."""
    # Before Python 3.14, Path.exists raises PermissionError below an unreadable directory; os.path.exists does not.
    candidates = (path, *path.absolute().parents)
    return next(candidate for candidate in candidates if os.path.exists(candidate))  # noqa: PTH110
