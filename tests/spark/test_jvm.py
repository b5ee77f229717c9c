"""The JVM's log: found by its process, rotated, and deleted after its process has ended."""

from __future__ import annotations

import io
import logging
import os
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

from headrace.spark import jvm

WRITE_LOG = """
import sys
from pathlib import Path
from pyspark import SparkContext
from headrace.spark import jvm

jvm.MAX_LOG_SIZE = "8KB"
jvm.start({}, Path(sys.argv[1]))
logger = SparkContext._jvm.org.slf4j.LoggerFactory.getLogger("test")
for line in range(300):
    logger.warn(f"line {line} " + "." * 90)
assert jvm.stop() == 0
"""


def test_log_is_rotated_and_one_old_file_is_kept(tmp_path):
    command = [sys.executable, "-c", WRITE_LOG, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    log, rotated = sorted((tmp_path / "logs").glob("spark-*"))
    assert rotated.name == f"{log.name}.1"
    lines = [int(line.split()[5]) for line in [*rotated.read_text().splitlines(), *log.read_text().splitlines()]]
    assert lines == list(range(lines[0], 300))
    assert 70 < len(lines) < 200


def test_logs_of_ended_processes_are_deleted_and_each_process_finds_its_own(spark, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    ended = subprocess.Popen(["true"])
    ended.wait()
    for day in range(10, 25):
        (logs / f"spark-202601{day}T120000-{ended.pid}.log").touch()
        (logs / f"spark-202601{day}T120000-{ended.pid}.log.1").touch()
    running = logs / f"spark-20260101T120000-{os.getppid()}.log"
    running.touch()
    assert jvm.log_file(tmp_path) is None
    own_log = logs / f"spark-20260102T120000-{os.getpid()}.log"
    own_log.touch()
    jvm.start({}, tmp_path)
    kept = {file.name for file in logs.glob("*.log")}
    assert len(kept) == jvm.MAX_LOGS - 1 + 2  # plus the log of a JVM that starts
    assert {running.name, own_log.name, f"spark-20260124T120000-{ended.pid}.log"} < kept
    assert {file.stem for file in logs.glob("*.log.1")} < kept
    assert jvm.log_file(tmp_path) == own_log


def test_py4j_logs_no_traceback_when_the_jvm_is_lost(capsys, monkeypatch):
    from py4j.clientserver import ClientServerConnection
    from py4j.java_gateway import GatewayClient

    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(sys.stderr)])
    for logger in jvm.PY4J_LOGGERS:
        monkeypatch.setattr(logging.getLogger(logger), "filters", [jvm.is_not_py4j_error])
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = GatewayClient(address="127.0.0.1", port=server.getsockname()[1])
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        client.send_command("c\n", retry=False)
    connection = SimpleNamespace(
        pool={"o": None},
        python_parameters=SimpleNamespace(propagate_java_exceptions=False),
        _get_params=lambda arguments: [],
    )
    assert "AttributeError" in ClientServerConnection._call_proxy(connection, "o", io.StringIO("unknown_method\n"))
    logging.error("another module")
    assert capsys.readouterr().err == "another module\n"
