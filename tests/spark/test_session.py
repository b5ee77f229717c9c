"""Sessions: their settings, their reuse, and the errors when one cannot be opened."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from headrace.config.load import load_bundle
from headrace.config.models import DatabricksEngine
from headrace.errors import ConfigurationError
from headrace.spark import engine_settings, session
from headrace.spark.session import bundle_session, open_session

REPOSITORY = Path(__file__).parents[2]

ERRORS = """
import os
import socket
import sys
from pathlib import Path
from headrace.config.models import DatabricksEngine, LocalEngine, SparkEngine
from headrace.errors import SetupError
from headrace.spark.session import open_session

def try_to_open(engine, **settings):
    try:
        open_session(engine, name="test", directory=Path(sys.argv[1]), settings=settings)
    except SetupError as error:
        print(error)

try_to_open(DatabricksEngine(kind="databricks"))
try_to_open(LocalEngine(kind="local", memory="999999g"))
try_to_open(LocalEngine(kind="local"), **{"spark.driver.extraJavaOptions": "-XX:ParallelGCThreads=many"})
old = Path(sys.argv[1], "bin", "java")
old.parent.mkdir()
old.write_text("#!/bin/sh\\necho 'openjdk version \\"11.0.2\\"' >&2\\n")
old.chmod(0o755)
environment = dict(os.environ)
os.environ["JAVA_HOME"] = sys.argv[1]
try_to_open(LocalEngine(kind="local"))
os.environ.clear()
os.environ.update(environment, HEADRACE_CACHE=sys.argv[1] + "/cache")
settings = sys.argv[1] + "/ivysettings.xml"
try_to_open(LocalEngine(kind="local", ivy_settings=settings))
try_to_open(SparkEngine(kind="spark", master="local", ivy_settings=settings))
os.environ.clear()
os.environ.update(environment)
with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
    try_to_open(LocalEngine(kind="local", ui=True), **{"spark.ui.port": port, "spark.port.maxRetries": 0})
"""
LIST_SETTINGS = """
import sys
from pathlib import Path
from headrace.config.models import LocalEngine
from headrace.spark.session import close_session, open_session

settings = {
    "spark.sql.extensions": "com.example.Unknown",
    "spark.driver.extraClassPath": "/nowhere/more.jar",
    "spark.driver.extraJavaOptions": "-Dset.by=user",
}
spark = open_session(LocalEngine(kind="local"), name="test", directory=Path(sys.argv[1]), settings=settings)
spark.range(1).write.format("delta").save(sys.argv[1] + "/table")
system = spark._jvm.java.lang.System
print(system.getProperty("set.by"), spark.read.format("delta").load(sys.argv[1] + "/table").count())
print(spark.conf.get("spark.driver.extraJavaOptions").count("-XX:+UseSerialGC"))
close_session(spark)
"""


@pytest.fixture
def clean(monkeypatch):
    """Restore what opening a session changes in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_errors_of_opening_a_session(tmp_path, monkeypatch, golden):
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    command = [sys.executable, "-c", ERRORS, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    output = re.sub(r"(only|memory) \d+", r"\1 4711", result.stdout)
    output = re.sub(r"(127.0.0.1:|from )\d+", r"\g<1>4711", output)
    output = re.sub(rf"{tmp_path}/logs/spark-[\dT]+-\d+\.log", "LOG", output)
    golden("session/errors", output.replace(str(tmp_path), "TMP"))


TUNED = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    "spark.databricks.delta.autoCompact.minNumFiles": "200",
    "spark.databricks.delta.autoCompact.maxFileSize": "2097152",
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 1 hour",
    "spark.sql.adaptive.enabled": "false",
    "spark.hadoop.fs.file.impl": "headrace.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.delta.logStore.file.impl": "headrace.TableLog",
    "spark.sql.streaming.pollingDelay": "10ms",  # set by the pytest plugin; 100ms in other sessions
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def test_local_session_has_tuned_settings(spark):
    conf = spark.sparkContext.getConf()
    assert {key: conf.get(key) for key in TUNED} == TUNED
    assert spark.sparkContext.uiWebUrl is None


def test_local_session_writes_no_checksum_files(spark, tmp_path):
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    names = [file.name for file in (tmp_path / "table").rglob("*") if file.is_file()]
    assert f"{0:020}.json" in names
    assert [name for name in names if name.startswith(".")] == []


def test_running_session_is_reused_and_not_closed(flow, clean):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: lines}}")
    bundle = flow.bundle()
    bundle = bundle.model_copy(
        update={"environment": bundle.environment.model_copy(update={"settings": {"spark.headrace.test": 7}})}
    )
    with bundle_session(bundle, name="test") as spark:
        assert spark.sparkContext.applicationId == flow.spark.sparkContext.applicationId
        assert spark.conf.get("spark.headrace.test") == "7"
        assert sys.path[0] == f"{bundle.root}/src"
    assert flow.spark.range(2).count() == 2
    flow.spark.conf.unset("spark.headrace.test")


def test_databricks_engine_uses_the_existing_session_with_the_environments_settings(spark, tmp_path):
    settings = {"spark.headrace.test": True}
    session = open_session(DatabricksEngine(kind="databricks"), name="test", directory=tmp_path, settings=settings)
    assert session.sparkContext.applicationId == spark.sparkContext.applicationId
    assert spark.conf.get("spark.headrace.test") == "True"
    spark.conf.unset("spark.headrace.test")
    assert not list(tmp_path.iterdir())


def test_user_settings_are_appended_to_list_settings(tmp_path):
    command = [sys.executable, "-c", LIST_SETTINGS, str(tmp_path)]
    environment = {**os.environ, "SPARK_HOME": str(tmp_path / "another-spark")}  # its jars would not match
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (result.returncode, result.stdout) == (0, "user 1\n1\n"), result.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_class_archive_is_published_only_after_a_completed_run(monkeypatch, fails):
    """The archive of a failed run would lack most classes, and later runs would not replace it."""
    published = []
    monkeypatch.setattr(session, "open_session", lambda *arguments, **options: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(session, "_is_spark_running", lambda: False)
    monkeypatch.setattr(session.jvm, "stop", lambda: 0)
    monkeypatch.setattr(session.cds_archive, "publish", lambda *, complete: published.append(complete))
    with suppress(ConfigurationError), session.bundle_session(load_bundle(REPOSITORY), name="test"):
        if fails:
            raise ConfigurationError("invalid", fix="none")
    assert published == [not fails]


def test_python_udf_on_a_table_does_not_hang_and_returns_default_results(spark, tmp_path):
    """By default Spark 4.2.0 hangs if the UDF is directly on a columnar scan; with a filter between, it reads rows."""
    path = str(tmp_path / "table")
    spark.createDataFrame([(1, "a"), (2, "b")], "id INT, k STRING").write.format("delta").save(path)
    table = spark.read.format("delta").load(path)
    returns = {"int": 1.0, "double": 3, "string": 4, "boolean": 1}
    udfs = {kind: F.udf(lambda k, value=value: value, kind) for kind, value in returns.items()}
    direct = table.select("id", *(udf("k").alias(kind) for kind, udf in udfs.items())).orderBy("id").collect()
    by_row = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, k STRING")
    assert direct == by_row.select("id", *(udf("k").alias(kind) for kind, udf in udfs.items())).orderBy("id").collect()
    assert str(spark.conf.get("spark.sql.execution.pythonUDF.arrow.enabled")) == "true"


def test_long_runs_use_the_optimizing_compiler():
    assert engine_settings.compiler_options(short=True) == ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    assert engine_settings.compiler_options(short=False) == ["-XX:+UseParallelGC"]
