"""Gives Spark: a tuned one inside this process, a cluster's, or the one that a Databricks job brings along."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.child_processes import kill_children
from headrace.config.models import Bundle, DatabricksEngine, Engine, LocalEngine, Setting, SparkEngine
from headrace.errors import ConfigurationError, SetupError, UnfinishedBatchError, one_line
from headrace.spark import cds_archive, jars, java, java_compiler, jvm
from headrace.spark.jvm import LOOPBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
EVERYWHERE = {"spark.sql.session.timeZone": "UTC", "spark.scheduler.mode": "FAIR"}
# A Python UDF directly over a columnar scan hangs for ever (SPARK-58241). Arrow itself stays on: without it, UDFs
# return other values (declared int, returns 1.0: null).
UDF_HANGS = {"4.2.0": {"spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false"}}

# With these a Delta micro-batch of 100 rows takes 0.4 s instead of 4.1 s (2 cores, Spark 4.2.0, Delta 4.4.0).
LOCAL = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    # For a run of days, whose commits add small files: each 50th lists all that there are, and those merged meanwhile.
    "spark.databricks.delta.autoCompact.minNumFiles": "200",
    "spark.databricks.delta.autoCompact.maxFileSize": "2097152",  # what has half of it is not merged again
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 1 hour",
    "spark.sql.adaptive.enabled": "false",
    # Hadoop's own class starts a chmod process for each file that it writes.
    "spark.hadoop.fs.file.impl": java_compiler.LOCAL_FILES,
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.delta.logStore.file.impl": java_compiler.TABLE_LOG,
    # An idle query asks its source this often; the stock 10 ms keeps a core busy listing directories.
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.ui.showConsoleProgress": "false",
}
LISTS = {
    "spark.sql.extensions": ",",
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.driver.extraJavaOptions": " ",
}
TAKEN = re.compile(r"BindException: (?:Failed to bind to /)?([^!\n]+)")


def open_session(
    engine: Engine,
    *,
    name: str,
    directory: Path,
    python_path: str = "",
    settings: Mapping[str, Setting] | None = None,
    short: bool = True,
    record: bool = False,
) -> SparkSession:
    """A session on the engine; `short` says whether the run will be, which decides how the JVM compiles.

    `record` makes the class archive when it is not there: for a whole run, whose classes are worth keeping.
    """
    if python_path:  # Python workers import the bundle's modules too
        os.environ["PYTHONPATH"] = os.pathsep.join([python_path, *filter(None, [os.environ.get("PYTHONPATH")])])
        sys.path.insert(0, python_path)
    chosen = {key: str(value) for key, value in (settings or {}).items()}
    if isinstance(engine, DatabricksEngine):
        return _databricks(chosen)
    _require_pyspark()
    from pyspark.sql import SparkSession

    java.require()
    if isinstance(engine, LocalEngine):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else functions run in whatever python3 there is
        conf = EVERYWHERE | DELTA | LOCAL | _local(engine, directory, short=short, record=record)
    else:
        conf = EVERYWHERE | DELTA | _cluster(engine)
    conf = _with(conf | UDF_HANGS.get(_pyspark_version(), {}), chosen)
    log = jvm.start(conf, directory)
    builder = SparkSession.builder.appName(name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        if taken := TAKEN.search(f"{error}\n{jvm.text(log)}"):  # of which Spark's JVM may have died
            fix = "choose another port in the settings, or end what holds it"
            raise SetupError(f"a port is taken: {taken[1]}", where=str(log), fix=fix) from error
        message = f"Spark did not start: {one_line(error)}"
        raise SetupError(message, where=str(log), fix="the log named above says more") from error
    if isinstance(engine, LocalEngine):
        _write_no_checksums(spark)
    return spark


def _write_no_checksums(spark: SparkSession) -> None:
    """Else Hadoop writes a second file beside each: half of all files, 5 % of a small batch (Spark 4.2.0)."""
    context: Any = spark.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)


def _with(ours: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """A user's settings go over ours; where a setting is a list, they come after ours."""
    joined = {key: f"{ours[key]}{by}{chosen[key]}" for key, by in LISTS.items() if key in ours and key in chosen}
    return {**ours, **chosen, **joined}


@contextmanager
def bundle_session(bundle: Bundle, *, name: str, short: bool = True, record: bool = False) -> Iterator[SparkSession]:
    """A session for the bundle's environment, closed at the end unless it was there before."""
    there_before = _is_running()
    try:
        spark = open_session(
            bundle.environment.engine,
            name=name,
            directory=bundle.directory,
            python_path=str(Path(bundle.root) / "src"),
            settings=bundle.environment.settings,
            short=short,
            record=record,
        )
    except KeyboardInterrupt:
        kill_children()
        raise
    whole = False
    try:
        yield spark
        whole = True
    except (KeyboardInterrupt, UnfinishedBatchError):
        kill_children()  # without its JVM nothing of the batch goes on; `stop` would wait for its tasks
        raise
    except Exception as error:
        if jvm.has_died(error):
            fix = "look into the log named above, and for a want of memory; then start again: nothing is lost"
            raise SetupError("Spark's JVM has died", where=str(jvm.log_file(bundle.directory)), fix=fix) from error
        raise
    finally:
        if not there_before:
            close_session(spark, whole=whole)


def close_session(spark: SparkSession, *, whole: bool = True) -> None:
    """Stops Spark and waits until its JVM is gone; what it recorded of a run is kept if that was a whole one."""
    with suppress(Exception) if jvm.has_died() else nullcontext():
        spark.stop()
    cds_archive.keep(whole=jvm.end() == 0 and whole)


def _require_pyspark() -> None:
    try:
        import pyspark
    except ModuleNotFoundError:
        raise SetupError("pyspark is not installed", fix="pip install 'headrace[local]'") from None
    home = Path(pyspark.__file__).parent
    if (home / "jars").is_dir():  # else a SPARK_HOME of another version would give the JVM its jars
        os.environ["SPARK_HOME"] = str(home)


def _pyspark_version() -> str:
    import pyspark

    return str(pyspark.__version__)


def _is_running() -> bool:
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _databricks(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None and "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        raise SetupError(
            "this environment's engine is Databricks, and here is no Databricks session",
            fix="run it there as a job (`headrace start`), or choose an environment with another engine",
        )
    spark = spark or SparkSession.builder.getOrCreate()
    for key, value in settings.items():
        try:
            spark.conf.set(key, value)
        except Exception as error:
            raise ConfigurationError(
                f"setting {key} cannot be {value}: {one_line(error)}",
                where="the environment's settings",
                fix="give it in the job's cluster (spark_conf) if it is one of the whole session",
            ) from error
    return spark


def _local(engine: LocalEngine, directory: Path, *, short: bool, record: bool) -> dict[str, str]:
    import pyspark

    java.require_memory(engine.memory)
    scratch = directory / "scratch"
    found = jars.spark_jars(pyspark.__version__, ivy_settings=_path(engine.ivy_settings))
    class_path = os.pathsep.join(str(jar) for jar in [*found, java_compiler.compiled_classes(found)])
    return {
        "spark.master": f"local[{engine.cores}]",
        "spark.driver.memory": engine.memory,
        "spark.driver.extraClassPath": class_path,
        "spark.sql.shuffle.partitions": str(engine.cores),
        "spark.default.parallelism": str(engine.cores),
        "spark.ui.enabled": str(engine.ui).lower(),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": " ".join(
            [*cds_archive.options(class_path, record=record), *_compiler(short=short)]
        ),
    }


def _compiler(*, short: bool) -> list[str]:
    """Measured: C1 alone halves a short run's CPU seconds; a long one is twice as fast with C2 and ParallelGC."""
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if short else ["-XX:+UseParallelGC"]


def _cluster(engine: SparkEngine) -> dict[str, str]:
    import pyspark

    found = jars.spark_jars(pyspark.__version__, ivy_settings=_path(engine.ivy_settings))
    conf = {"spark.master": engine.master, "spark.jars": ",".join(str(jar) for jar in found)}
    # A cluster on this machine needs no other address, and nobody else is to reach its driver.
    return conf | {"spark.driver.host": LOOPBACK} if f"//{LOOPBACK}:" in engine.master else conf


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
