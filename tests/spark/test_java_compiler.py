"""Our Java classes are compiled once, and a table's log tells what Delta's own tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import SetupError
from headrace.spark import jars, java_compiler


@pytest.fixture
def spark_jars(monkeypatch, tmp_path):
    """Spark's jars, while what is compiled goes into an empty cache."""
    import pyspark

    found = jars.spark_jars(pyspark.__version__)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    (tmp_path / "jars").mkdir()
    return found


def test_it_is_compiled_once(spark_jars, tmp_path):
    jar = java_compiler.compiled_classes(spark_jars)
    made = jar.stat()
    assert list((tmp_path / "jars").iterdir()) == [jar]
    assert java_compiler.compiled_classes(spark_jars) == jar
    assert jar.stat() == made
    jar.write_bytes(b"")  # the disk has lost it
    assert java_compiler.compiled_classes(spark_jars).stat().st_size == made.st_size


def test_another_source_is_another_jar(spark_jars, tmp_path, monkeypatch):
    before = java_compiler.compiled_classes(spark_jars)
    local_files, table_log = java_compiler.SOURCES
    changed = tmp_path / table_log.name
    changed.write_text(table_log.read_text().replace("deleted since", "gone since"))
    monkeypatch.setattr(java_compiler, "SOURCES", (local_files, changed))
    assert java_compiler.compiled_classes(spark_jars) != before


def test_what_cannot_be_compiled_is_told(spark_jars, tmp_path, monkeypatch, golden):
    broken = tmp_path / "TableLog.java"
    broken.write_text("package headrace; public class TableLog {")
    monkeypatch.setattr(java_compiler, "SOURCES", (broken,))
    with pytest.raises(SetupError) as caught:
        java_compiler.compiled_classes(spark_jars)
    golden("janino/broken", str(caught.value).replace(str(tmp_path), "…"))
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_log_tells_what_deltas_own_tells(spark, tmp_path):
    table = tmp_path / "table"
    for version in range(3):
        spark.range(version).write.format("delta").mode("append").save(str(table))
    assert spark.conf.get("spark.delta.logStore.file.impl") == java_compiler.TABLE_LOG
    log = table / "_delta_log"
    for name in (f"{0:020}.json", f"{1:020}.json", f"{1:020}.checkpoint", f"{9:020}.json", "_", "~"):
        ours, deltas = (told(spark, kind, log / name) for kind in KINDS)
        assert ours == deltas
    assert len(told(spark, java_compiler.TABLE_LOG, log / f"{1:020}.json")) > 2


def test_a_log_that_is_not_there_is_told(spark, tmp_path):
    for kind in KINDS:
        with pytest.raises(Exception, match=r"FileNotFoundException: .*nowhere"):
            told(spark, kind, tmp_path / "nowhere" / f"{0:020}.json")


KINDS = (java_compiler.TABLE_LOG, "io.delta.storage.LocalLogStore")


def told(spark, kind: str, path: Path) -> list[str]:
    """The files that a log of this kind lists from this path on, as far as Delta looks at them."""
    jvm, settings = spark._jvm, spark._jsc.hadoopConfiguration()
    listed = getattr(jvm, kind)(settings).listFrom(jvm.org.apache.hadoop.fs.Path(f"file:{path}"), settings)
    found = []
    while listed.hasNext():
        status = listed.next()
        found.append(f"{status.getPath()} {status.getLen()} {status.getModificationTime()} {status.isFile()}")
    return found
