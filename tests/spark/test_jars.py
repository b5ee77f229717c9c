"""Jars: locked, downloaded, verified, and repaired when damaged."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SetupError
from headrace.spark import ivy, jars

BYTES = {"org.one:first:1.0": b"first" * 100, "org.two:second_2.13:2.0.1": b"second" * 100}
SETTINGS = """<ivysettings><settings defaultResolver="mirror"/><resolvers>
<ibiblio name="mirror" m2compatible="true" usepoms="false" root="{root}"/>
</resolvers></ivysettings>"""


class Mirror:
    """A registry in a directory, and Ivy settings that use it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "mirror"
        self.settings = directory / "ivysettings.xml"
        self.settings.write_text(SETTINGS.format(root=self.root.as_uri()))
        for coordinates, content in BYTES.items():
            self.serve(coordinates, content)

    def path(self, coordinates: str) -> Path:
        group, artifact, version = coordinates.split(":")
        return self.root / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"

    def serve(self, coordinates: str, content: bytes) -> None:
        self.path(coordinates).parent.mkdir(parents=True, exist_ok=True)
        self.path(coordinates).write_bytes(content)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A registry with the jars of a small lock, and an empty cache."""
    locks = tmp_path / "locks"
    locks.mkdir()
    lines = [f"{name}  {hashlib.sha256(content).hexdigest()}  {len(content)}" for name, content in BYTES.items()]
    (locks / "spark-9.8.lock").write_text("# a comment\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr(jars, "LOCKS", locks)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    return Mirror(tmp_path)


def load_jars(mirror: Mirror) -> list[bytes]:
    return [path.read_bytes() for path in jars.spark_jars("9.8.1", ivy_settings=mirror.settings)]


@pytest.fixture
def assert_error(mirror: Mirror, tmp_path: Path, golden: Callable[[str, str], None]) -> Callable[[str], None]:
    """Request the jars, and compare the error with a golden file."""

    def check(name: str) -> None:
        with pytest.raises(SetupError) as error:
            load_jars(mirror)
        message = str(error.value).replace(str(tmp_path), "TMP")
        golden(f"jars/{name}", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", message))

    return check


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "jars").glob("*"))


def test_jars_are_downloaded_once_and_keep_their_order(mirror: Mirror) -> None:
    assert load_jars(mirror) == list(BYTES.values())
    mirror.settings.write_text("not read again")
    assert load_jars(mirror) == list(BYTES.values())


def test_temporary_files_of_downloads_are_deleted(mirror: Mirror, tmp_path: Path) -> None:
    load_jars(mirror)
    assert cached_files(tmp_path) == ["first-1.0.jar", "second_2.13-2.0.1.jar"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda jar: jar.unlink(), id="deleted"),
        pytest.param(lambda jar: jar.write_bytes(jar.read_bytes()[:-1]), id="truncated"),
        pytest.param(lambda jar: jar.write_bytes(b"X" + jar.read_bytes()[1:]), id="one byte changed"),
    ],
)
def test_only_a_damaged_jar_is_downloaded_again(mirror: Mirror, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    cache = tmp_path / "cache" / "jars"
    cache.mkdir(parents=True)
    for jar, content in zip(jars.locked("spark-9.8"), BYTES.values(), strict=True):
        (cache / jar.file).write_bytes(content)
    assert jars.missing("spark-9.8") == ()
    damage(cache / "first-1.0.jar")
    assert [jar.file for jar in jars.missing("spark-9.8")] == ["first-1.0.jar"]
    mirror.path("org.two:second_2.13:2.0.1").unlink()
    assert load_jars(mirror) == list(BYTES.values())


def test_jar_that_does_not_match_the_lock_is_an_error(
    mirror: Mirror, assert_error: Callable[[str], None], tmp_path: Path
) -> None:
    mirror.serve("org.two:second_2.13:2.0.1", b"sEcond" * 100)
    assert_error("sha256_mismatch")
    assert cached_files(tmp_path) == []


def test_truncated_download_is_an_error(mirror: Mirror, assert_error: Callable[[str], None], tmp_path: Path) -> None:
    mirror.serve("org.one:first:1.0", BYTES["org.one:first:1.0"][:-1])
    assert_error("truncated_download")
    assert cached_files(tmp_path) == []


def test_checksum_of_the_registry_is_verified(mirror: Mirror, assert_error: Callable[[str], None]) -> None:
    mirror.path("org.one:first:1.0").with_name("first-1.0.jar.sha1").write_text("0" * 40)
    assert_error("invalid_checksum")


def test_jar_missing_from_the_mirror_is_an_error_with_a_log(
    mirror: Mirror, assert_error: Callable[[str], None], tmp_path: Path
) -> None:
    mirror.path("org.one:first:1.0").unlink()
    assert_error("missing_in_mirror")
    assert "org.one#first;1.0: not found" in (tmp_path / "cache" / "jars" / "ivy.log").read_text()


POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>org.one</groupId><artifactId>first</artifactId><version>1.0</version><dependencies>
<dependency><groupId>org.three</groupId><artifactId>third</artifactId><version>3.0</version></dependency>
</dependencies></project>"""


def test_only_jars_of_the_lock_are_downloaded(mirror: Mirror) -> None:
    mirror.path("org.one:first:1.0").with_suffix(".pom").write_text(POM)
    mirror.settings.write_text(mirror.settings.read_text().replace('usepoms="false" ', ""))
    assert load_jars(mirror) == list(BYTES.values())


@pytest.mark.parametrize(
    ("server", "name"), [("127.0.0.1:{port}", "connection_refused"), ("registry.invalid", "unknown_host")]
)
def test_error_without_network_says_how_to_get_the_jars(
    mirror: Mirror, assert_error: Callable[[str], None], server: str, name: str
) -> None:
    with socket.socket() as not_listening:
        not_listening.bind(("127.0.0.1", 0))
        server = server.format(port=not_listening.getsockname()[1])
        mirror.settings.write_text(SETTINGS.format(root=f"http://{server}/"))
        assert_error(name)


def test_invalid_ivy_settings_are_an_error(mirror: Mirror, assert_error: Callable[[str], None]) -> None:
    mirror.settings.write_text("<ivysettings")
    assert_error("invalid_settings")
    mirror.settings.unlink()
    assert_error("missing_settings")


def test_missing_java_is_an_error(assert_error: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert_error("missing_java")


def test_missing_pyspark_is_an_error(assert_error: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_error("missing_pyspark")


def test_unwritable_cache_is_an_error(assert_error: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    assert_error("unwritable_cache")


def test_slow_download_prints_a_notice(
    mirror: Mirror, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "NOTICE_DELAY_S", 0)
    load_jars(mirror)
    assert capsys.readouterr().err == "downloading 2 jars (0 MB) into the cache …\n"


def test_quick_download_prints_nothing(
    mirror: Mirror, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "NOTICE_DELAY_S", 600)
    load_jars(mirror)
    assert capfd.readouterr() == ("", "")


FETCH = """
import sys, pathlib
from headrace.spark import jars
jars.LOCKS = pathlib.Path(sys.argv[1])
for jar in jars.spark_jars("9.8.0", ivy_settings=pathlib.Path(sys.argv[2])):
    print(jars.sha256(jar))
"""


def test_concurrent_downloads_by_two_processes(mirror: Mirror, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FETCH, str(jars.LOCKS), str(mirror.settings)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    expected = "".join(hashlib.sha256(content).hexdigest() + "\n" for content in BYTES.values())
    assert [process.communicate(timeout=60)[0] for process in processes] == [expected, expected]
    assert cached_files(tmp_path) == ["first-1.0.jar", "second_2.13-2.0.1.jar"]


def test_another_process_finishes_its_download_first(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    download = ivy.download

    def slow_download(*args: Any, **settings: Any) -> None:
        download(*args, **settings)
        monkeypatch.setattr(ivy, "download", download)
        load_jars(mirror)

    monkeypatch.setattr(ivy, "download", slow_download)
    assert load_jars(mirror) == list(BYTES.values())


def test_error_for_unsupported_spark_lists_supported_versions(
    golden: Callable[[str, str], None],
) -> None:
    with pytest.raises(SetupError) as error:
        jars.spark_jars("3.5.1")
    golden("jars/unsupported_spark", str(error.value))


@pytest.mark.parametrize("name", sorted(path.stem for path in jars.LOCKS.glob("*.lock")))
def test_lock_is_well_formed_with_unique_file_names(name: str) -> None:
    lock = jars.locked(name)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in lock)
    assert len({jar.file for jar in lock}) == len(lock)


def test_jars_with_equal_names_in_two_locks_are_equal() -> None:
    locks = [jars.locked(path.stem) for path in jars.LOCKS.glob("*.lock")]
    hashes: dict[str, set[str]] = {}
    for jar in (jar for lock in locks for jar in lock):
        hashes.setdefault(jar.file, set()).add(jar.sha256)
    assert [file for file, sha256s in hashes.items() if len(sha256s) > 1] == []


def test_jars_match_the_installed_spark_and_delta() -> None:
    paths = jars.spark_jars(version("pyspark"))
    assert [path.name for path in paths if path.name.startswith("delta-spark_")] == [
        f"delta-spark_{'.'.join(version('pyspark').split('.')[:2])}_2.13-{version('delta-spark')}.jar"
    ]
    assert all(zipfile.is_zipfile(path) for path in paths)


def test_cache_directory_from_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert jars.cache() == Path("/xdg/headrace")
    monkeypatch.setenv("HEADRACE_CACHE", "~/mine")
    assert jars.cache() == Path.home() / "mine"
