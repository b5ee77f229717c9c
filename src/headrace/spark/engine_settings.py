"""Spark settings for the local engine and for clusters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from headrace.config.models import LocalEngine, SparkEngine
from headrace.spark import cds_archive, jars, java, java_compiler
from headrace.spark.jvm import LOOPBACK

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
COMMON = {"spark.sql.session.timeZone": "UTC", "spark.scheduler.mode": "FAIR"}
# By Spark version. A Python UDF directly on a columnar scan hangs forever (SPARK-58241). Only columnar input is
# disabled, not Arrow: without Arrow, UDFs return other values (null, if a UDF that is declared as int returns 1.0).
UDF_HANG_WORKAROUNDS = {"4.2.0": {"spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false"}}

# With these settings a Delta micro-batch of 100 rows takes 0.4 s instead of 4.1 s (2 cores, Spark 4.2.0, Delta 4.4.0).
LOCAL = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    # Each commit of a long run adds small files. Every 50th commit writes a checkpoint of the table's log, which lists
    # all files of the table, and the files that compaction has replaced within the retention time. To keep this list
    # short, small files are merged and the retention time is an hour.
    "spark.databricks.delta.autoCompact.minNumFiles": "200",
    # Files of at least half this size are not compacted again.
    "spark.databricks.delta.autoCompact.maxFileSize": "2097152",
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 1 hour",
    "spark.sql.adaptive.enabled": "false",
    # Hadoop's own file system starts a chmod process for each file that it writes.
    "spark.hadoop.fs.file.impl": java_compiler.LOCAL_FILES,
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.delta.logStore.file.impl": java_compiler.TABLE_LOG,
    # How often an idle query polls its source. With Spark's default of 10 ms, it keeps a core busy with listing files.
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.ui.showConsoleProgress": "false",
}
LIST_SEPARATORS = {  # the settings whose values are lists, and the separators of the lists
    "spark.sql.extensions": ",",
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.driver.extraJavaOptions": " ",
}


def local_settings(engine: LocalEngine, directory: Path, *, short: bool, record_class_archive: bool) -> dict[str, str]:
    """Return the settings of a local session. Raise SetupError if its memory or jars are not available.

    See `session.open_session` for `short` and `record_class_archive`.
    """
    import pyspark

    java.require_memory(engine.memory)
    scratch = directory / "scratch"
    spark_jars = jars.spark_jars(pyspark.__version__, ivy_settings=_path(engine.ivy_settings))
    class_path = os.pathsep.join(str(jar) for jar in [*spark_jars, java_compiler.compiled_classes(spark_jars)])
    return (
        _common()
        | LOCAL
        | {
            "spark.master": f"local[{engine.cores}]",
            "spark.driver.memory": engine.memory,
            "spark.driver.extraClassPath": class_path,
            "spark.sql.shuffle.partitions": str(engine.cores),
            "spark.default.parallelism": str(engine.cores),
            "spark.ui.enabled": str(engine.ui).lower(),
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.extraJavaOptions": " ".join(
                [
                    *cds_archive.options(class_path, record_class_archive=record_class_archive),
                    *compiler_options(short=short),
                ]
            ),
        }
    )


def compiler_options(*, short: bool) -> list[str]:
    """Return the JVM's options for its compilers and garbage collector, for a long run unless `short` is true.

    The quick compiler (C1) alone halves the CPU time of a short run. The optimising compiler (C2) and the parallel
    collector double the speed of a long run.
    """
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if short else ["-XX:+UseParallelGC"]


def cluster_settings(engine: SparkEngine) -> dict[str, str]:
    """Return the settings of a session on a standalone cluster."""
    import pyspark

    spark_jars = jars.spark_jars(pyspark.__version__, ivy_settings=_path(engine.ivy_settings))
    conf = _common() | {"spark.master": engine.master, "spark.jars": ",".join(str(jar) for jar in spark_jars)}
    is_cluster_on_this_machine = f"//{LOOPBACK}:" in engine.master
    if is_cluster_on_this_machine:  # no other machine connects to the driver
        conf["spark.driver.host"] = LOOPBACK
    return conf


def merge_settings(conf: Mapping[str, str], user_settings: Mapping[str, str]) -> dict[str, str]:
    """Return `conf` with the user's settings added.

    A setting in both has the user's value; but if its value is a list, the user's list is appended to that of `conf`.
    """
    lists = {
        key: f"{conf[key]}{separator}{user_settings[key]}"
        for key, separator in LIST_SEPARATORS.items()
        if key in conf and key in user_settings
    }
    return {**conf, **user_settings, **lists}


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _common() -> dict[str, str]:
    import pyspark

    return COMMON | DELTA | UDF_HANG_WORKAROUNDS.get(pyspark.__version__, {})
