"""Sessions: tuned, shared while one is there, and refused with words when the machine cannot have one."""

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
from headrace.spark import session
from headrace.spark.session import bundle_session, open_session

REPOSITORY = Path(__file__).parents[2]

REFUSED = """
import os
import socket
import sys
from pathlib import Path
from headrace.config.models import DatabricksEngine, LocalEngine, SparkEngine
from headrace.errors import SetupError
from headrace.session import open_session

def ask(engine, **settings):
    try:
        open_session(engine, name="test", directory=Path(sys.argv[1]), settings=settings)
    except SetupError as error:
        print(error)

ask(DatabricksEngine(kind="databricks"))
ask(LocalEngine(kind="local", memory="999999g"))
ask(LocalEngine(kind="local"), **{"spark.driver.extraJavaOptions": "-XX:ParallelGCThreads=many"})
old = Path(sys.argv[1], "bin", "java")
old.parent.mkdir()
old.write_text("#!/bin/sh\\necho 'openjdk version \\"11.0.2\\"' >&2\\n")
old.chmod(0o755)
as_it_was = dict(os.environ)
os.environ["JAVA_HOME"] = sys.argv[1]
ask(LocalEngine(kind="local"))
os.environ.clear()
os.environ.update(as_it_was, HEADRACE_CACHE=sys.argv[1] + "/cache")
settings = sys.argv[1] + "/ivysettings.xml"
ask(LocalEngine(kind="local", ivy_settings=settings))
ask(SparkEngine(kind="spark", master="local", ivy_settings=settings))
os.environ.clear()
os.environ.update(as_it_was)
with socket.create_server(("127.0.0.1", 0)) as taken:
    port = taken.getsockname()[1]
    ask(LocalEngine(kind="local", ui=True), **{"spark.ui.port": port, "spark.port.maxRetries": 0})
"""
ADDED = """
import sys
from pathlib import Path
from headrace.config.models import LocalEngine
from headrace.session import close_session, open_session

settings = {
    "spark.sql.extensions": "com.example.NotThere",
    "spark.driver.extraClassPath": "/nowhere/more.jar",
    "spark.driver.extraJavaOptions": "-Dasked.by=user",
}
spark = open_session(LocalEngine(kind="local"), name="test", directory=Path(sys.argv[1]), settings=settings)
spark.range(1).write.format("delta").save(sys.argv[1] + "/table")
system = spark._jvm.java.lang.System
print(system.getProperty("asked.by"), spark.read.format("delta").load(sys.argv[1] + "/table").count())
print(spark.conf.get("spark.driver.extraJavaOptions").count("-XX:+UseSerialGC"))
close_session(spark)
"""


@pytest.fixture
def clean(monkeypatch):
    """Takes back what opening a session sets in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_a_session_that_cannot_be_is_refused_in_words(tmp_path, monkeypatch, golden):
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    done = subprocess.run([sys.executable, "-c", REFUSED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = re.sub(r"(only|memory) \d+", r"\1 4711", done.stdout)
    said = re.sub(r"(127.0.0.1:|from )\d+", r"\g<1>4711", said)
    said = re.sub(rf"{tmp_path}/logs/spark-[\dT]+-\d+\.log", "LOG", said)
    golden("session/refused", said.replace(str(tmp_path), "TMP"))


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
    "spark.sql.streaming.pollingDelay": "10ms",  # the plugin's own; 100ms elsewhere
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def test_a_local_session_is_tuned(spark):
    conf = spark.sparkContext.getConf()
    assert {key: conf.get(key) for key in TUNED} == TUNED
    assert spark.sparkContext.uiWebUrl is None


def test_a_local_session_writes_no_checksum_files(spark, tmp_path):
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    written = [file.name for file in (tmp_path / "table").rglob("*") if file.is_file()]
    assert f"{0:020}.json" in written
    assert [name for name in written if name.startswith(".")] == []


def test_a_session_that_is_there_is_used_and_stays(flow, clean):
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


def test_on_databricks_the_jobs_own_session_is_taken_with_the_environments_settings(spark, tmp_path):
    settings = {"spark.headrace.test": True}
    taken = open_session(DatabricksEngine(kind="databricks"), name="test", directory=tmp_path, settings=settings)
    assert taken.sparkContext.applicationId == spark.sparkContext.applicationId
    assert spark.conf.get("spark.headrace.test") == "True"
    spark.conf.unset("spark.headrace.test")
    assert not list(tmp_path.iterdir())


def test_a_users_settings_are_added_to_ours_where_they_are_lists(tmp_path):
    command = [sys.executable, "-c", ADDED, str(tmp_path)]
    elsewhere = {**os.environ, "SPARK_HOME": str(tmp_path / "another-spark")}  # whose jars would not fit
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=elsewhere)
    assert (done.returncode, done.stdout) == (0, "user 1\n1\n"), done.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_only_of_a_whole_run_the_classes_are_kept(monkeypatch, fails):
    """Of one that was refused they would lack most, for good."""
    kept = []
    monkeypatch.setattr(session, "open_session", lambda *given, **named: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(session, "_is_running", lambda: False)
    monkeypatch.setattr(session.jvm, "end", lambda: 0)
    monkeypatch.setattr(session.archive, "keep", lambda *, whole: kept.append(whole))
    with suppress(ConfigurationError), session.bundle_session(load_bundle(REPOSITORY), name="test"):
        if fails:
            raise ConfigurationError("refused", fix="none")
    assert kept == [not fails]


def test_a_python_udf_over_a_table_ends_and_gives_what_stock_spark_gives(spark, tmp_path):
    """Directly over a columnar scan stock Spark 4.2.0 hangs; a filter between makes it read row by row."""
    path = str(tmp_path / "table")
    spark.createDataFrame([(1, "a"), (2, "b")], "id INT, k STRING").write.format("delta").save(path)
    table = spark.read.format("delta").load(path)
    returns = {"int": 1.0, "double": 3, "string": 4, "boolean": 1}
    udfs = {kind: F.udf(lambda k, value=value: value, kind) for kind, value in returns.items()}
    direct = table.select("id", *(udf("k").alias(kind) for kind, udf in udfs.items())).orderBy("id").collect()
    by_row = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, k STRING")
    assert direct == by_row.select("id", *(udf("k").alias(kind) for kind, udf in udfs.items())).orderBy("id").collect()
    assert str(spark.conf.get("spark.sql.execution.pythonUDF.arrow.enabled")) == "true"


def test_a_long_run_is_compiled_by_the_optimising_compiler():
    assert session._compiler(short=True) == ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    assert session._compiler(short=False) == ["-XX:+UseParallelGC"]
