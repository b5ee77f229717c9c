"""Start and stop Spark's JVM. Its output goes to a log file instead of the terminal."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headrace import interrupts
from headrace.child_processes import CHILDREN, kill_children
from headrace.errors import SetupError, one_line
from headrace.liveness import process_exists

LOOPBACK = "127.0.0.1"
LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {size}
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
MAX_LOGS = 10  # including the log of the JVM that is about to start
EXIT_TIMEOUT_S = 10.0  # how long to wait for the exit of a JVM that has closed its connections
STOP_TIMEOUT_S = 60.0  # how long `stop` waits for the exit of the JVM
PY4J_LOGGERS = ("", "py4j.clientserver")  # "" is the root logger, to which py4j also writes
MAX_LOG_SIZE = "64MB"  # at this size, the log is rotated, and the previous rotated file is deleted
# Java prints these lines after the line that names the cause of a failed start.
LINES_AFTER_CAUSE = ("Error: Could not create the Java Virtual Machine", "Error: A fatal exception has occurred")


def start(conf: Mapping[str, str], directory: Path) -> Path:
    """Start the JVM, unless one is running, and return its log file, which is under `directory`.

    `conf` are Spark settings. If a JVM is running that logs elsewhere, return the path of a file that does not exist.
    Delete the oldest logs of ended processes. Raise SetupError if the JVM does not start.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    logs = directory / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for old in sorted(logs.glob("spark-*.log"))[: -MAX_LOGS + 1]:
        if not process_exists(int(old.stem.rpartition("-")[2])):  # keep the log of a run that lasts for weeks
            for file in (old, old.with_suffix(".log.1")):
                file.unlink(missing_ok=True)
    for logger in PY4J_LOGGERS:
        logging.getLogger(logger).addFilter(is_not_py4j_error)
    log = logs / f"spark-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    properties = logs / "log4j2.properties"
    properties.write_text(LOG4J.format(log="${sys:headrace.log}", size=MAX_LOG_SIZE))
    java_options = conf.get("spark.driver.extraJavaOptions", "")
    java_options += f' "-Dlog4j2.configurationFile={properties.absolute().as_uri()}" "-Dheadrace.log={log}"'
    launch_conf = SparkConf(loadDefaults=False).setAll([*conf.items()])
    launch_conf.set("spark.driver.extraJavaOptions", java_options.strip())
    if SparkContext._gateway is not None:
        return log_file(directory) or log
    if conf.get("spark.driver.host") == LOOPBACK:
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    with log.open("ab") as output, _registered_jvm():
        try:
            gateway = launch_gateway(
                launch_conf,  # type: ignore[no-untyped-call]
                popen_kwargs={"stdout": output, "stderr": output},
            )
        except KeyboardInterrupt:
            kill_children()  # pyspark would not stop a JVM to which it has not connected yet
            raise
        except Exception as error:
            raise SetupError(
                f"the JVM did not start: {_cause_in_log(log) or one_line(error)}",
                where=str(log),
                fix="see the log named above; `headrace doctor` checks Java and memory",
            ) from error
    SparkContext._ensure_initialized(gateway=gateway)
    return log


def is_not_py4j_error(record: logging.LogRecord) -> bool:
    """Return false for errors that py4j logs about a lost JVM, true for all other records.

    These errors are redundant, because the failed call also raises an exception (py4j 0.10.9.9).
    """
    return record.levelno < logging.ERROR or record.module not in ("java_gateway", "clientserver")


@contextmanager
def _registered_jvm() -> Iterator[None]:
    """Add a JVM that pyspark starts in this block to CHILDREN, and let the JVM ignore signals.

    The JVM is added as soon as its process exists, so that it can be killed if a signal arrives before `launch_gateway`
    returns, which happens only when the JVM answers.
    The JVM ignores SIGTERM and SIGHUP, which a service manager or a terminal sends to all processes of a run (pyspark
    already lets it ignore SIGINT). Otherwise the JVM would die in the middle of a batch.
    """
    from pyspark import java_gateway

    module: Any = java_gateway
    popen = module.Popen

    def start_process(*arguments: Any, preexec_fn: Callable[[], None], **options: Any) -> subprocess.Popen[Any]:
        def ignore_signals() -> None:
            preexec_fn()
            interrupts.handle(signal.SIG_IGN)

        with interrupts.deferred():
            CHILDREN.append(popen(*arguments, preexec_fn=ignore_signals, **options))
        return CHILDREN[-1]

    module.Popen = start_process
    try:
        yield
    finally:
        module.Popen = popen


def has_died(error: BaseException | None = None) -> bool:
    """Return whether the JVM that this process started has died; false if it has not started one.

    If `error` or one of its causes is a lost connection, wait up to EXIT_TIMEOUT_S for the JVM's exit before.
    """
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    if any(map(_is_connection_error, _with_causes(error))):  # a dying JVM closes its connections first
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=EXIT_TIMEOUT_S)
    return process.poll() is not None


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes; nothing for None."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_connection_error(error: BaseException) -> bool:
    from py4j.protocol import Py4JNetworkError

    return isinstance(error, Py4JNetworkError | ConnectionError)


def stop() -> int | None:
    """Stop the JVM, wait until it has ended, and return its exit code.

    Return None if this process has not started a JVM, or if the JVM does not end within STOP_TIMEOUT_S.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return None
    gateway.shutdown()
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_TIMEOUT_S)
    SparkContext._gateway = SparkContext._jvm = None
    code: int | None = process.poll()
    return code


def log_file(directory: Path) -> Path | None:
    """Return the log file of this process's JVM under `directory`; None if there is none."""
    logs = sorted((directory / "logs").glob(f"spark-*-{os.getpid()}.log"))
    return logs[-1] if logs else None


def read_log(log: Path) -> str:
    """Return what the JVM has written to the log so far; empty if there is no log."""
    return log.read_text(errors="replace") if log.exists() else ""


def _cause_in_log(log: Path) -> str:
    """Return the last line of the log that may name the cause of a failed start; empty if there is no such line."""
    lines = [line for line in read_log(log).splitlines() if line.strip() and not line.startswith(LINES_AFTER_CAUSE)]
    return lines[-1] if lines else ""
