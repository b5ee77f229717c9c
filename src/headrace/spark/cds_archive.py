"""Keeps a class archive for the JVM: the classes that a run loads, ready made, so that the next start is quicker.

An archive belongs to one JVM and one class path; when anything differs Java ignores it without a word.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from headrace.liveness import process_exists
from headrace.spark import jars, java

KEPT = 4  # archives, of 200 MB each: a machine has few clones and versions in use


def options(class_path: str, *, record: bool) -> list[str]:
    """The JVM options that use the archive, or that make it when this JVM ends, if it will have done a whole run."""
    kept = _place(class_path)
    with suppress(OSError):  # a cache that cannot be written, or read, only costs the archive
        if kept.exists():
            with suppress(OSError):
                kept.touch()  # the last used ones are kept
            return [f'"-XX:SharedArchiveFile={kept}"', "-Xshare:auto"]
        if record:
            kept.parent.mkdir(parents=True, exist_ok=True)
            _tidy()
            return [f'"-XX:ArchiveClassesAtExit={kept.with_suffix(f".{os.getpid()}")}"']
    return []


def keep(*, whole: bool) -> None:
    """Puts an archive that this process's JVM has made where the next one finds it; one that is not whole goes."""
    for fresh in _directory().glob(f"*.{os.getpid()}"):
        if whole:
            fresh.replace(fresh.with_suffix(".jsa"))
        else:
            fresh.unlink()


def _tidy() -> None:
    """Drops what a killed process was making, and all archives but those that were used last."""
    used = sorted(_directory().glob("*.jsa"), key=lambda kept: kept.stat().st_mtime)
    dead = [file for file in _directory().glob("*.[0-9]*") if not process_exists(int(file.suffix[1:]))]
    for file in [*used[: -KEPT + 1], *dead]:
        file.unlink(missing_ok=True)


def _directory() -> Path:
    return jars.cache() / "classes"


def _place(class_path: str) -> Path:
    import pyspark

    there = [jar for jar in class_path.split(os.pathsep) if Path(jar).exists()]
    changed = [str(Path(file).stat().st_mtime_ns) for file in (pyspark.__file__, *there)]  # which Java compares
    identity = "\n".join([java.identity(), pyspark.__version__, pyspark.__file__, class_path, *changed])
    return _directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
