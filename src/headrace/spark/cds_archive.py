"""Cache the classes that a run loads in a class data sharing (CDS) archive, so that the next JVM starts faster.

An archive is valid for one Java installation and one class path. Java silently ignores an archive that does not match.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from headrace.liveness import process_exists
from headrace.spark import jars, java

MAX_ARCHIVES = 4  # an archive has 200 MB, and few checkouts and versions are in use on one machine


def options(class_path: str, *, record: bool) -> list[str]:
    """Return the JVM options that use the archive for this class path.

    If there is no archive and `record` is true, return the options with which the JVM creates it when it exits.
    """
    archive = _archive(class_path)
    with suppress(OSError):  # without access to the cache, the JVM starts without an archive
        if archive.exists():
            with suppress(OSError):
                archive.touch()  # `_clean_up` deletes the least recently used archives
            return [f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto"]
        if record:
            archive.parent.mkdir(parents=True, exist_ok=True)
            _clean_up()
            return [f'"-XX:ArchiveClassesAtExit={archive.with_suffix(f".{os.getpid()}")}"']
    return []


def publish(*, complete: bool) -> None:
    """Make the archive that this process's JVM has created available to later runs, or delete it if it is incomplete.

    `complete` is whether the JVM has ended normally after a complete run.
    """
    for created in _directory().glob(f"*.{os.getpid()}"):
        if complete:
            created.replace(created.with_suffix(".jsa"))
        else:
            created.unlink()


def _clean_up() -> None:
    """Delete unfinished archives of killed processes, and the least recently used archives."""
    archives = sorted(_directory().glob("*.jsa"), key=lambda archive: archive.stat().st_mtime)
    unfinished = [file for file in _directory().glob("*.[0-9]*") if not process_exists(int(file.suffix[1:]))]
    for file in [*archives[: -MAX_ARCHIVES + 1], *unfinished]:
        file.unlink(missing_ok=True)


def _directory() -> Path:
    return jars.cache() / "classes"


def _archive(class_path: str) -> Path:
    import pyspark

    existing = [jar for jar in class_path.split(os.pathsep) if Path(jar).exists()]
    changed = [str(Path(file).stat().st_mtime_ns) for file in (pyspark.__file__, *existing)]  # Java compares these
    identity = "\n".join([java.identity(), pyspark.__version__, pyspark.__file__, class_path, *changed])
    return _directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
