"""The same bundle on a real Spark cluster: one master, one worker, reached by its address."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable

from processes import copy_bundle, headrace, kill_group, wait_until

SPARK = Path(pyspark.__file__).parent


def start(stack: ExitStack, log: Path, *command: str) -> None:
    """A process of the cluster, ended with its group."""
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


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster of this test's own."""
    log = tmp_path / "master.log"
    package = "org.apache.spark.deploy"
    with ExitStack() as stack:
        start(stack, log, f"{package}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        wait_until(lambda: re.search(r"Starting Spark master at (\S+)", log.read_text()) is not None, "a master")
        (address,) = re.findall(r"Starting Spark master at (\S+)", log.read_text())
        worker = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "1g", address)
        start(stack, tmp_path / "worker.log", f"{package}.worker.Worker", *worker)
        wait_until(lambda: "Registering worker" in log.read_text(), "a worker")
        yield address


def test_the_orders_pipeline_runs_there_unchanged(master: str, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=300, customers=20, files=3, pace=10)
    local = (bundle / "conf" / "local.yml").read_text()
    cluster = re.sub(r"^engine:.*$", f'engine: {{kind: spark, master: "{master}"}}', local, flags=re.MULTILINE)
    settings = "settings: {spark.sql.shuffle.partitions: 2, spark.executor.memory: 800m, spark.ui.enabled: false}\n"
    (bundle / "conf" / "local.yml").write_text(cluster + settings)
    with headrace("run", "orders", bundle=bundle) as process:
        assert process.wait(timeout=300) == 0, (bundle / "output.txt").read_text()
    rows = {
        name: DeltaTable(str(bundle / ".headrace" / "tables" / name)).to_pyarrow_table().num_rows
        for name in ("bronze_orders", "silver_orders", "gold_revenue")
    }
    assert rows["bronze_orders"] == rows["silver_orders"] > 250
    assert rows["gold_revenue"] > 0
    assert "Registered app" in (tmp_path / "master.log").read_text()
