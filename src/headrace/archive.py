"""Keeps a class archive for the JVM: the classes that a run loads, ready made, so that the next start is quicker.

An archive belongs to one JVM and one class path; when anything differs Java ignores it without a word.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from headrace import jars, java


def options(class_path: str, *, record: bool) -> list[str]:
    """The JVM options that use the archive, or that make it when this JVM ends, if it will have done a whole run."""
    kept = _place(class_path)
    if kept.exists():
        return [f"-XX:SharedArchiveFile={kept}", "-Xshare:auto"]
    if not record:
        return []
    fresh = kept.with_suffix(f".{os.getpid()}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    return [f"-XX:ArchiveClassesAtExit={fresh}"]


def keep(*, whole: bool) -> None:
    """Puts an archive that this process's JVM has made where the next one finds it; one that is not whole goes."""
    for fresh in _directory().glob(f"*.{os.getpid()}"):
        if whole:
            fresh.replace(fresh.with_suffix(".jsa"))
        else:
            fresh.unlink()


def _directory() -> Path:
    return jars.cache() / "classes"


def _place(class_path: str) -> Path:
    import pyspark

    identity = "\n".join([java.identity(), pyspark.__version__, pyspark.__file__, class_path])
    return _directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
