"""Compiles the Java class of ours, once into the user's cache, by the Janino that pyspark ships.

Delta looks at a table's log several times a batch, and its own class for local disks (4.4.0) then asks the disk for
the size, times, owner and group of every file: after twenty minutes of commits, half of a small batch's time.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from headrace import jars, java
from headrace.errors import SetupError

TABLE_LOG = "headrace.TableLog"
SOURCE = Path(__file__).with_name("TableLog.java")
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def table_log(class_path: Sequence[Path]) -> Path:
    """The jar that holds the class, compiled against Spark's jars and those of the class path; made when not there."""
    import pyspark

    spark = Path(pyspark.__file__).parent / "jars"
    identity = "\n".join([SOURCE.read_text(encoding="utf-8"), pyspark.__version__, *(jar.name for jar in class_path)])
    jar = jars.cache() / "jars" / f"headrace-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jar"
    if not zipfile.is_zipfile(jar):
        with jars.writing():
            _compile([*class_path, *spark.glob("*.jar")], spark, jar)
    return jar


def _compile(against: Sequence[Path], spark: Path, jar: Path) -> None:
    compiler = [*spark.glob("janino-*.jar"), *spark.glob("commons-compiler-*.jar")]
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="compiling-") as private:
        command: list[str | Path] = [java.executable(), "-XX:TieredStopAtLevel=1", "-cp", _joined(compiler), COMPILER]
        command += ["-d", private, "-classpath", _joined(against), SOURCE]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        compiled = sorted(Path(private).rglob("*.class"))
        if done.returncode != 0 or not compiled:
            said = (done.stdout + done.stderr).strip().partition("\n")[0]
            fix = "install headrace and pyspark anew"
            raise SetupError(f"{SOURCE.name} cannot be compiled: {said}", where=str(SOURCE), fix=fix)
        whole = Path(private, jar.name)
        with zipfile.ZipFile(whole, "w") as archive:
            for file in compiled:
                archive.write(file, file.relative_to(private))
        whole.replace(jar)  # atomic: whoever comes last replaces a jar by one that does the same


def _joined(paths: Sequence[Path]) -> str:
    return os.pathsep.join(str(path) for path in paths)
