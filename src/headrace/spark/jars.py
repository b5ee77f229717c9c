"""The jars that are needed beside Spark's own: locked by sha256, fetched once into the user's cache."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import SetupError
from headrace.spark import ivy

LOCKS = Path(__file__).with_name("locks")
KAFKA_BROKER = "kafka-broker"
_TELL_AFTER = 2.0


@dataclass(frozen=True)
class Jar:
    """One line of a lock: what the jar is called, and which bytes it is."""

    coordinates: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        """Its name in the cache."""
        return ivy.jar_file(self.coordinates)


def spark_jars(spark_version: str, *, ivy_settings: Path | None = None) -> tuple[Path, ...]:
    """Return the jars that this Spark needs for Delta, Kafka and Avro; fetch those that the cache lacks."""
    return _ready(spark_lock(spark_version), ivy_settings)


def kafka_broker_jars(*, ivy_settings: Path | None = None) -> tuple[Path, ...]:
    """The class path of a real Kafka broker, for tests; fetched when it is not there."""
    return _ready(KAFKA_BROKER, ivy_settings)


def spark_lock(spark_version: str) -> str:
    """The name of the lock for this Spark; a SetupError when there is none."""
    name = "spark-" + ".".join(spark_version.split(".")[:2])
    if (LOCKS / f"{name}.lock").is_file():
        return name
    known = sorted(path.stem.removeprefix("spark-") for path in LOCKS.glob("spark-*.lock"))
    raise SetupError(
        f"Spark {spark_version} is not one that Headrace has jars for: {', '.join(known)}",
        fix="pip install 'headrace[local]', which brings the Spark that Headrace is made for",
    )


def locked(name: str) -> tuple[Jar, ...]:
    """The jars of one lock, in the order of the class path."""
    lines = (LOCKS / f"{name}.lock").read_text(encoding="utf-8").splitlines()
    fields = (line.split() for line in lines if line and not line.startswith("#"))
    return tuple(Jar(coordinates, sha256, int(size)) for coordinates, sha256, size in fields)


def cache() -> Path:
    """Where fetched things stay: HEADRACE_CACHE, else `headrace` in the user's cache directory."""
    named = os.environ.get("HEADRACE_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "headrace"


def missing(name: str) -> tuple[Jar, ...]:
    """The jars of one lock that are not in the cache, or are there with other bytes."""
    # Every byte at every start: 17 ms for Spark's 22 MB, and no stamp that could be wrong.
    return tuple(jar for jar in locked(name) if not _is(jar, _directory() / jar.file))


def megabytes(jars: Iterable[Jar]) -> str:
    """How much there is to fetch, for people."""
    return f"{sum(jar.size for jar in jars) / 1e6:.0f} MB"


def fetch(jars: tuple[Jar, ...], *, ivy_settings: Path | None = None) -> None:
    """Fetch these jars into the cache; other processes may do the same at the same time."""
    notice = threading.Timer(_TELL_AFTER, _tell, (f"fetching {len(jars)} jars ({megabytes(jars)}) once …",))
    notice.start()
    try:
        with writing(), tempfile.TemporaryDirectory(dir=_directory(), prefix="fetching-") as private:
            coordinates = [jar.coordinates for jar in jars]
            ivy.download(coordinates, Path(private), settings=ivy_settings, log=_directory() / "ivy.log")
            for jar in jars:
                _check(jar, Path(private, jar.file))
            for jar in jars:
                # Atomic: whoever comes last replaces bytes by the same bytes.
                Path(private, jar.file).replace(_directory() / jar.file)
    finally:
        notice.cancel()


@contextmanager
def writing() -> Iterator[None]:
    """Makes the directory of the jars; says so when it, or a jar, cannot be written."""
    try:
        _directory().mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise SetupError(
            f"the jars cannot be written to {_directory()}: {error.strerror or error}",
            fix="make room there, or set HEADRACE_CACHE to a directory that you may write to",
        ) from error


def sha256(path: Path) -> str:
    """The hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _directory() -> Path:
    return cache() / "jars"


def _ready(name: str, ivy_settings: Path | None) -> tuple[Path, ...]:
    absent = missing(name)
    if absent:
        fetch(absent, ivy_settings=ivy_settings)
    return tuple(_directory() / jar.file for jar in locked(name))


def _is(jar: Jar, path: Path) -> bool:
    # Path.is_file raises where nobody may look, until Python 3.14.
    return os.path.isfile(path) and sha256(path) == jar.sha256  # noqa: PTH113


def _check(jar: Jar, path: Path) -> None:
    if _is(jar, path):
        return
    raise SetupError(
        f"{jar.coordinates} was served with other bytes than the lock says: sha256 {sha256(path)} "
        f"in place of {jar.sha256}; nothing was kept",
        fix="ask whoever runs the registry or mirror how its bytes were changed; until then give another one "
        "in engine.ivy_settings",
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
