"""Compile Headrace's Java classes once, into the user's cache, with the Janino compiler that pyspark includes.

`TableLog` replaces Delta's log store for local disks. Delta lists a table's log several times per batch. For each
listing, Delta's log store (Delta 4.4.0) reads size, times, owner and group of every file in the log. After twenty
minutes of commits, this takes half of the time of a small batch.

`LocalFiles` replaces Hadoop's local file system, which starts a `chmod` process for each file that it writes
(Hadoop 3.4, 3.5). `LocalFiles` also works around a bug of Spark's file source with names like `report[1].json`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import SetupError
from headrace.spark import jars, java

TABLE_LOG = "headrace.TableLog"
LOCAL_FILES = "headrace.LocalFiles"
SOURCES = (Path(__file__).with_name("LocalFiles.java"), Path(__file__).with_name("TableLog.java"))
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def compiled_classes(class_path: Sequence[Path]) -> Path:
    """Return the jar with Headrace's classes.

    If the jar is not cached, compile the classes. They use classes of Spark's jars and of `class_path`.
    """
    import pyspark

    spark_jars = Path(pyspark.__file__).parent / "jars"
    sources = [source.read_text(encoding="utf-8") for source in SOURCES]
    identity = "\n".join([*sources, pyspark.__version__, *(jar.name for jar in class_path)])
    jar = jars.cache() / "jars" / f"headrace-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jar"
    if not zipfile.is_zipfile(jar):
        with jars.writable_cache():
            _compile([*class_path, *spark_jars.glob("*.jar")], spark_jars, jar)
    return jar


def _compile(class_path: Sequence[Path], spark_jars: Path, jar: Path) -> None:
    """Compile the classes into `jar`, with the compiler in the directory `spark_jars`."""
    compiler = [*spark_jars.glob("janino-*.jar"), *spark_jars.glob("commons-compiler-*.jar")]
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="compiling-") as temporary:
        command: list[str | Path] = [java.executable(), "-XX:TieredStopAtLevel=1", "-cp", _join(compiler), COMPILER]
        command += ["-d", temporary, "-classpath", _join(class_path), *SOURCES]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace")
        classes = sorted(Path(temporary).rglob("*.class"))
        if result.returncode != 0 or not classes:
            error = (result.stdout + result.stderr).strip().partition("\n")[0]
            raise SetupError(
                f"Headrace's Java classes cannot be compiled: {error}",
                where=str(SOURCES[0].parent),
                fix="reinstall headrace and pyspark",
            )
        new_jar = Path(temporary, jar.name)
        with zipfile.ZipFile(new_jar, "w") as archive:
            for file in classes:
                archive.write(file, file.relative_to(temporary))
        new_jar.replace(jar)  # atomic, because a concurrent process may create the same jar


def _join(paths: Sequence[Path]) -> str:
    return os.pathsep.join(str(path) for path in paths)
