"""The JVM's log: found again, set aside before it fills the disk, and gone when its process is long gone."""

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

TALKS = """
import sys
from pathlib import Path
from pyspark import SparkContext
from headrace import jvm

jvm.LOG_SIZE = "8KB"
jvm.start({}, Path(sys.argv[1]))
logger = SparkContext._jvm.org.slf4j.LoggerFactory.getLogger("test")
for line in range(300):
    logger.warn(f"line {line} " + "." * 90)
assert jvm.end() == 0
"""


def test_a_long_log_is_set_aside_once(tmp_path):
    done = subprocess.run([sys.executable, "-c", TALKS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log, before = sorted((tmp_path / "logs").glob("spark-*"))
    assert before.name == f"{log.name}.1"
    lines = [int(line.split()[5]) for line in [*before.read_text().splitlines(), *log.read_text().splitlines()]]
    assert lines == list(range(lines[0], 300))
    assert 70 < len(lines) < 200


def test_the_logs_of_processes_that_are_gone_go_and_each_process_finds_its_own(spark, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    ended = subprocess.Popen(["true"])
    ended.wait()
    for day in range(10, 25):
        (logs / f"spark-202601{day}T120000-{ended.pid}.log").touch()
        (logs / f"spark-202601{day}T120000-{ended.pid}.log.1").touch()
    lives = logs / f"spark-20260101T120000-{os.getppid()}.log"
    lives.touch()
    assert jvm.log_file(tmp_path) is None
    own = logs / f"spark-20260102T120000-{os.getpid()}.log"
    own.touch()
    jvm.start({}, tmp_path)
    kept = {file.name for file in logs.glob("*.log")}
    assert len(kept) == jvm.KEPT_LOGS - 1 + 2  # a JVM that starts has its own beside them
    assert {lives.name, own.name, f"spark-20260124T120000-{ended.pid}.log"} < kept
    assert {file.stem for file in logs.glob("*.log.1")} < kept
    assert jvm.log_file(tmp_path) == own


def test_a_jvm_that_is_gone_leaves_no_traceback_of_py4j(capsys, monkeypatch):
    from py4j.clientserver import ClientServerConnection
    from py4j.java_gateway import GatewayClient

    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(sys.stderr)])
    for logger in jvm.PY4J:
        monkeypatch.setattr(logging.getLogger(logger), "filters", [jvm.is_not_of_py4j])
    with socket.create_server(("127.0.0.1", 0)) as gone:
        client = GatewayClient(address="127.0.0.1", port=gone.getsockname()[1])
        threading.Thread(target=lambda: gone.accept()[0].close(), daemon=True).start()
        client.send_command("c\n", retry=False)
    called_back = SimpleNamespace(
        pool={"o": None},
        python_parameters=SimpleNamespace(propagate_java_exceptions=False),
        _get_params=lambda given: [],
    )
    assert "AttributeError" in ClientServerConnection._call_proxy(called_back, "o", io.StringIO("not_there\n"))
    logging.error("of others")
    assert capsys.readouterr().err == "of others\n"
