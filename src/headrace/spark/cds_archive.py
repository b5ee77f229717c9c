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


def options(class_path: str, *, record_class_archive: bool) -> list[str]:
    """Return the JVM options that use the archive for this class path.

    If there is no archive and `record_class_archive` is true, return the options with which the JVM creates the archive
    when it exits. If there is none and `record_class_archive` is false, or if the cache cannot be accessed, return no
    options.
    """
    archive = _archive(class_path)
    with suppress(OSError):  # without access to the cache, the JVM starts without an archive
        if archive.exists():
            with suppress(OSError):
                archive.touch()  # `_clean_up` deletes the least recently used archives
            return [f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto"]
        if record_class_archive:
            archive.parent.mkdir(parents=True, exist_ok=True)
            _clean_up()
            unpublished = archive.with_suffix(f".{os.getpid()}")  # `publish` renames it after a complete run
            return [f'"-XX:ArchiveClassesAtExit={unpublished}"']
    return []


def publish(*, complete: bool) -> None:
    """Make the archive that this process's JVM has created available to later runs. Do nothing if there is none.

    `complete` is whether the JVM has ended normally after a complete run. If it is false, delete the archive instead.
    """
    for created in _directory().glob(f"*.{os.getpid()}"):
        if complete:
            created.replace(created.with_suffix(".jsa"))
        else:
            created.unlink()


def _clean_up() -> None:
    """Delete the least recently used archives, so that one can be added, and unpublished archives of ended processes.

    The suffix of an unpublished archive is the id of its process.
    """
    archives = sorted(_directory().glob("*.jsa"), key=lambda archive: archive.stat().st_mtime)
    abandoned = [file for file in _directory().glob("*.[0-9]*") if not process_exists(int(file.suffix[1:]))]
    for file in [*archives[: -MAX_ARCHIVES + 1], *abandoned]:
        file.unlink(missing_ok=True)


def _directory() -> Path:
    return jars.cache() / "classes"


def _archive(class_path: str) -> Path:
    """Return the path of the archive for this class path, with a hash of everything that the archive depends on."""
    import pyspark

    existing = [jar for jar in class_path.split(os.pathsep) if Path(jar).exists()]
    # Java ignores an archive if a jar has another modification time than when the archive was created.
    modified = [str(Path(file).stat().st_mtime_ns) for file in (pyspark.__file__, *existing)]
    identity = "\n".join([java.identity(), pyspark.__version__, pyspark.__file__, class_path, *modified])
    return _directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
