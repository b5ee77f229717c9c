"""The jars that Headrace needs in addition to Spark's: locked by sha256, downloaded once into the user's cache."""

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
NOTICE_DELAY_S = 2.0  # a download that takes longer is announced on the terminal


@dataclass(frozen=True)
class Jar:
    """One entry of a lock file: a jar's coordinates, sha256 and size."""

    coordinates: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        """Its file name in the cache."""
        return ivy.jar_file(self.coordinates)


def spark_jars(spark_version: str, *, ivy_settings: Path | None = None) -> tuple[Path, ...]:
    """Return the jars that this Spark version needs for Delta, Kafka and Avro. Download those that are not cached."""
    return _cached(spark_lock(spark_version), ivy_settings)


def kafka_broker_jars(*, ivy_settings: Path | None = None) -> tuple[Path, ...]:
    """Return the class path of a Kafka broker, for tests. Download the jars that are not cached."""
    return _cached(KAFKA_BROKER, ivy_settings)


def spark_lock(spark_version: str) -> str:
    """Return the name of the lock for this Spark version; raise SetupError if there is none."""
    name = "spark-" + ".".join(spark_version.split(".")[:2])
    if (LOCKS / f"{name}.lock").is_file():
        return name
    raise SetupError(
        f"Spark {spark_version} is not supported: Headrace has jars for Spark {', '.join(_spark_versions())}",
        fix="pip install 'headrace[local]', which installs a supported Spark",
    )


def supported_versions() -> tuple[list[str], str]:
    """Return the versions of Spark and the version of Delta for which there are jars."""
    (delta,) = {delta_version(f"spark-{spark}") for spark in _spark_versions()}
    return _spark_versions(), delta


def delta_version(name: str) -> str:
    """Return the version of the Delta jars in a lock of Spark."""
    delta_jar = next(jar for jar in locked(name) if ":delta-spark_" in jar.coordinates)
    return delta_jar.coordinates.split(":")[2]  # group, artifact, version


def _spark_versions() -> list[str]:
    return sorted(path.stem.removeprefix("spark-") for path in LOCKS.glob("spark-*.lock"))


def locked(name: str) -> tuple[Jar, ...]:
    """Return the jars of a lock file, in class path order; `name` is the file's name without suffix."""
    lines = (LOCKS / f"{name}.lock").read_text(encoding="utf-8").splitlines()
    fields = (line.split() for line in lines if line and not line.startswith("#"))
    return tuple(Jar(coordinates, sha256, int(size)) for coordinates, sha256, size in fields)


def cache() -> Path:
    """Return the cache directory: HEADRACE_CACHE, or `headrace` in the user's cache directory."""
    directory = os.environ.get("HEADRACE_CACHE")
    if directory:
        return Path(directory).expanduser().absolute()
    user_cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_cache) if user_cache else Path.home() / ".cache") / "headrace"


def missing(name: str) -> tuple[Jar, ...]:
    """Return the jars of a lock file that are not in the cache, or whose cached copy has another sha256."""
    # Hash every jar at every start. This takes 17 ms for the 22 MB of Spark's lock, and stored hashes could be wrong.
    return tuple(jar for jar in locked(name) if not _matches(jar, _directory() / jar.file))


def megabytes(jars: Iterable[Jar]) -> str:
    """Return the total size of the jars as text."""
    return f"{sum(jar.size for jar in jars) / 1e6:.0f} MB"


def fetch(jars: tuple[Jar, ...], *, ivy_settings: Path | None = None) -> None:
    """Download jars into the cache, and verify them. Other processes may download the same jars concurrently."""
    line = f"downloading {len(jars)} jars ({megabytes(jars)}) into the cache …"
    notice = threading.Timer(NOTICE_DELAY_S, _print_notice, (line,))
    notice.start()
    try:
        with writable_cache(), tempfile.TemporaryDirectory(dir=_directory(), prefix="fetching-") as temporary:
            coordinates = [jar.coordinates for jar in jars]
            ivy.download(coordinates, Path(temporary), settings=ivy_settings, log=_directory() / "ivy.log")
            for jar in jars:
                _verify(jar, Path(temporary, jar.file))
            for jar in jars:
                # Atomic. A concurrent process may have written the file, with the same bytes.
                Path(temporary, jar.file).replace(_directory() / jar.file)
    finally:
        notice.cancel()


@contextmanager
def writable_cache() -> Iterator[None]:
    """Create the cache directory of the jars. The block writes to this directory: its OSErrors become a SetupError."""
    try:
        _directory().mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise SetupError(
            f"the jars cannot be written to {_directory()}: {error.strerror or error}",
            fix="check its permissions and free space, or set HEADRACE_CACHE to a writable directory",
        ) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _directory() -> Path:
    return cache() / "jars"


def _cached(name: str, ivy_settings: Path | None) -> tuple[Path, ...]:
    """Return the cached files of a lock's jars. Download those that are missing."""
    missing_jars = missing(name)
    if missing_jars:
        fetch(missing_jars, ivy_settings=ivy_settings)
    return tuple(_directory() / jar.file for jar in locked(name))


def _matches(jar: Jar, path: Path) -> bool:
    """Return whether the file has the jar's sha256; false if there is no such file."""
    # Before Python 3.14, Path.is_file raises an error if the directory cannot be read; os.path.isfile does not.
    return os.path.isfile(path) and sha256(path) == jar.sha256  # noqa: PTH113


def _verify(jar: Jar, path: Path) -> None:
    """Raise SetupError if the downloaded file is not the jar of the lock file."""
    if _matches(jar, path):
        return
    raise SetupError(
        f"the downloaded {jar.coordinates} does not match the lock: its sha256 is {sha256(path)} "
        f"instead of {jar.sha256}; nothing was saved",
        fix="ask the owner of the registry or mirror why the file changed; until then configure another one "
        "in engine.ivy_settings",
    )


def _print_notice(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
