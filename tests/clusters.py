"""Start a standalone Spark cluster for one test: one master and one worker on loopback."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from processes import kill_group, wait_until

SPARK = Path(pyspark.__file__).parent
# Settings that leave enough memory for the tests on a small machine.
SETTINGS = "settings: {spark.sql.shuffle.partitions: 2, spark.executor.memory: 800m, spark.ui.enabled: false}\n"


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """Start the cluster, with its logs in the directory, and yield the address of its master."""
    log, package = directory / "master.log", "org.apache.spark.deploy"
    with ExitStack() as stack:
        _start(stack, log, f"{package}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        wait_until(lambda: re.search(r"Starting Spark master at (\S+)", log.read_text()) is not None, "the master")
        (address,) = re.findall(r"Starting Spark master at (\S+)", log.read_text())
        worker = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "1g", address)
        _start(stack, directory / "worker.log", f"{package}.worker.Worker", *worker)
        wait_until(lambda: "Registering worker" in log.read_text(), "the worker")
        yield address


def _start(stack: ExitStack, log: Path, *command: str) -> None:
    """Start a process of the cluster. Its process group is killed at the end."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK)}
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), *command],
            stdout=output,
            stderr=output,
            env=environment,
            text=True,
            start_new_session=True,
            cwd=log.parent,
        )
    stack.callback(kill_group, process)
