"""Headrace's Java classes are compiled once, and TableLog lists the same files as Delta's own class."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import SetupError
from headrace.spark import jars, java_compiler


@pytest.fixture
def spark_jars(monkeypatch, tmp_path):
    """Spark's jars, with an empty cache for compiled classes."""
    import pyspark

    paths = jars.spark_jars(pyspark.__version__)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    (tmp_path / "jars").mkdir()
    return paths


def test_classes_are_compiled_once(spark_jars, tmp_path):
    jar = java_compiler.compiled_classes(spark_jars)
    status = jar.stat()
    assert list((tmp_path / "jars").iterdir()) == [jar]
    assert java_compiler.compiled_classes(spark_jars) == jar
    assert jar.stat() == status
    jar.write_bytes(b"")  # damaged
    assert java_compiler.compiled_classes(spark_jars).stat().st_size == status.st_size


def test_changed_source_is_compiled_to_another_jar(spark_jars, tmp_path, monkeypatch):
    before = java_compiler.compiled_classes(spark_jars)
    local_files, table_log = java_compiler.SOURCES
    changed = tmp_path / table_log.name
    changed.write_text(table_log.read_text().replace("just deleted", "deleted"))
    monkeypatch.setattr(java_compiler, "SOURCES", (local_files, changed))
    assert java_compiler.compiled_classes(spark_jars) != before


def test_compile_error_is_reported(spark_jars, tmp_path, monkeypatch, golden):
    broken = tmp_path / "TableLog.java"
    broken.write_text("package headrace; public class TableLog {")
    monkeypatch.setattr(java_compiler, "SOURCES", (broken,))
    with pytest.raises(SetupError) as error:
        java_compiler.compiled_classes(spark_jars)
    golden("java_compiler/compile_error", str(error.value).replace(str(tmp_path), "…"))
    assert list((tmp_path / "jars").iterdir()) == []


def test_table_log_lists_the_same_files_as_deltas_own_class(spark, tmp_path):
    table = tmp_path / "table"
    for version in range(3):
        spark.range(version).write.format("delta").mode("append").save(str(table))
    assert spark.conf.get("spark.delta.logStore.file.impl") == java_compiler.TABLE_LOG
    log = table / "_delta_log"
    for name in (f"{0:020}.json", f"{1:020}.json", f"{1:020}.checkpoint", f"{9:020}.json", "_", "~"):
        ours, deltas = (listing(spark, kind, log / name) for kind in KINDS)
        assert ours == deltas
    assert len(listing(spark, java_compiler.TABLE_LOG, log / f"{1:020}.json")) > 2


def test_missing_log_raises_file_not_found(spark, tmp_path):
    for kind in KINDS:
        with pytest.raises(Exception, match=r"FileNotFoundException: .*nowhere"):
            listing(spark, kind, tmp_path / "nowhere" / f"{0:020}.json")


KINDS = (java_compiler.TABLE_LOG, "io.delta.storage.LocalLogStore")


def listing(spark, kind: str, path: Path) -> list[str]:
    """Return the files that a log store of this class lists from this path, with the attributes that Delta uses."""
    jvm, settings = spark._jvm, spark._jsc.hadoopConfiguration()
    statuses = getattr(jvm, kind)(settings).listFrom(jvm.org.apache.hadoop.fs.Path(f"file:{path}"), settings)
    files = []
    while statuses.hasNext():
        status = statuses.next()
        files.append(f"{status.getPath()} {status.getLen()} {status.getModificationTime()} {status.isFile()}")
    return files
