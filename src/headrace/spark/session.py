"""Open Spark sessions: local with tuned settings, on a cluster, or the existing session of a Databricks job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.child_processes import kill_children
from headrace.config.models import Bundle, DatabricksEngine, Engine, LocalEngine, Setting
from headrace.errors import ConfigurationError, SetupError, UnfinishedBatchError, one_line
from headrace.spark import cds_archive, java, jvm
from headrace.spark.engine_settings import cluster_settings, local_settings, merge_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT_IN_USE = re.compile(r"BindException: (?:Failed to bind to /)?([^!\n]+)")


def open_session(
    engine: Engine,
    *,
    name: str,
    directory: Path,
    python_path: str = "",
    settings: Mapping[str, Setting] | None = None,
    short: bool = True,
    record_class_archive: bool = False,
) -> SparkSession:
    """Open a session on the engine.

    `directory` is that of the environment; logs and temporary files are written there. `python_path` is a directory
    with modules to import, such as the bundle's. `settings` are the user's Spark settings.

    `short` and `record_class_archive` apply only to a local engine. If `short` is true, the JVM uses only its quick
    compiler (C1), for a short run; otherwise it also uses the optimising compiler (C2). If `record_class_archive` is
    true and there is no class data sharing (CDS) archive yet, the JVM creates one; otherwise it only uses an existing
    one. Set `record_class_archive` only for a session that executes a complete run, so that the archive has all classes
    that a run loads.

    Raise SetupError if Spark does not start, ConfigurationError if a Databricks session rejects a setting.
    """
    if python_path:  # also in PYTHONPATH, because Python workers import the modules too
        os.environ["PYTHONPATH"] = os.pathsep.join([python_path, *filter(None, [os.environ.get("PYTHONPATH")])])
        sys.path.insert(0, python_path)
    user_settings = {key: str(value) for key, value in (settings or {}).items()}
    if isinstance(engine, DatabricksEngine):
        return _databricks_session(user_settings)
    _set_spark_home()
    from pyspark.sql import SparkSession

    java.require()
    if isinstance(engine, LocalEngine):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the default is the first python3 on PATH
        conf = local_settings(engine, directory, short=short, record_class_archive=record_class_archive)
    else:
        conf = cluster_settings(engine)
    conf = merge_settings(conf, user_settings)
    log = jvm.start(conf, directory)
    builder = SparkSession.builder.appName(name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        # If the JVM has died, only its log names the port.
        if port := PORT_IN_USE.search(f"{error}\n{jvm.read_log(log)}"):
            fix = "choose another port in the settings, or stop the process that uses it"
            raise SetupError(f"a port is in use: {port[1]}", where=str(log), fix=fix) from error
        message = f"Spark did not start: {one_line(error)}"
        raise SetupError(message, where=str(log), fix="see the log named above for details") from error
    if isinstance(engine, LocalEngine):
        _disable_checksum_files(spark)
    return spark


def _disable_checksum_files(spark: SparkSession) -> None:
    """Stop Hadoop from writing a checksum file beside each file, which takes 5 % of a small batch (Spark 4.2.0)."""
    context: Any = spark.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)


@contextmanager
def bundle_session(
    bundle: Bundle, *, name: str, short: bool = True, record_class_archive: bool = False
) -> Iterator[SparkSession]:
    """Open a session for the bundle's environment. Close it at the end of the block, unless Spark was running before.

    See `open_session` for `short` and `record_class_archive`. If the block is interrupted or leaves a batch unfinished,
    kill the JVM first. Raise SetupError if the block fails because the JVM has died.
    """
    was_running = _is_spark_running()
    try:
        spark = open_session(
            bundle.environment.engine,
            name=name,
            directory=bundle.run_files_directory,
            python_path=str(Path(bundle.root) / "src"),
            settings=bundle.environment.settings,
            short=short,
            record_class_archive=record_class_archive,
        )
    except KeyboardInterrupt:
        kill_children()
        raise
    completed = False
    try:
        yield spark
        completed = True
    except (KeyboardInterrupt, UnfinishedBatchError):
        kill_children()  # kill the JVM: SparkSession.stop would wait for the tasks of the interrupted batch
        raise
    except Exception as error:
        if jvm.has_died(error):
            fix = "check the log named above and the free memory, then start again: no rows are lost"
            raise SetupError(
                "Spark's JVM has died", where=str(jvm.log_file(bundle.run_files_directory)), fix=fix
            ) from error
        raise
    finally:
        if not was_running:
            close_session(spark, completed=completed)


def close_session(spark: SparkSession, *, completed: bool = True) -> None:
    """Stop Spark and wait until its JVM has ended.

    `completed` is whether the session executed everything that it was opened for. If so, publish the class archive that
    the JVM has created, if any; otherwise delete it.
    """
    with suppress(Exception) if jvm.has_died() else nullcontext():  # a dead JVM does not answer
        spark.stop()
    cds_archive.publish(complete=jvm.stop() == 0 and completed)


def _set_spark_home() -> None:
    """Let pyspark use its own jars, if it has any. Raise SetupError if pyspark is not installed."""
    try:
        import pyspark
    except ModuleNotFoundError:
        raise SetupError("pyspark is not installed", fix="pip install 'headrace[local]'") from None
    home = Path(pyspark.__file__).parent
    if (home / "jars").is_dir():  # the user's SPARK_HOME may have the jars of another version
        os.environ["SPARK_HOME"] = str(home)


def _is_spark_running() -> bool:
    """Return whether this process has a Spark session. Do not import pyspark for this, because that is slow."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _databricks_session(settings: Mapping[str, str]) -> SparkSession:
    """Return the session of the Databricks job, with these settings.

    Raise SetupError outside of Databricks, ConfigurationError if Databricks rejects a setting.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None and "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        raise SetupError(
            "the environment's engine is Databricks, but there is no Databricks session",
            fix="run it on Databricks as a job (`headrace start`), or choose an environment with another engine",
        )
    spark = spark or SparkSession.builder.getOrCreate()
    for key, value in settings.items():
        try:
            spark.conf.set(key, value)
        except Exception as error:
            raise ConfigurationError(
                f"setting {key} cannot be set to {value}: {one_line(error)}",
                where="the environment's settings",
                fix="set it in the job's cluster (spark_conf) if it is a static setting",
            ) from error
    return spark
