"""Jars come from a lock, are verified byte by byte, and heal themselves."""

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
    """A registry in a directory, and the Ivy settings that point to it."""

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
    """A registry that serves what a small lock names, and an empty cache."""
    locks = tmp_path / "locks"
    locks.mkdir()
    lines = [f"{name}  {hashlib.sha256(content).hexdigest()}  {len(content)}" for name, content in BYTES.items()]
    (locks / "spark-9.8.lock").write_text("# a comment\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr(jars, "LOCKS", locks)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    return Mirror(tmp_path)


def ready(mirror: Mirror) -> list[bytes]:
    return [path.read_bytes() for path in jars.spark_jars("9.8.1", ivy_settings=mirror.settings)]


@pytest.fixture
def refused(mirror: Mirror, tmp_path: Path, golden: Callable[[str, str], None]) -> Callable[[str], None]:
    """Asks for the jars, and compares the refusal with a golden file."""

    def ask(name: str) -> None:
        with pytest.raises(SetupError) as caught:
            ready(mirror)
        said = str(caught.value).replace(str(tmp_path), "TMP")
        golden(f"jars/{name}", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", said))

    return ask


def cached(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "jars").glob("*"))


def test_jars_are_fetched_once_and_keep_their_order(mirror: Mirror) -> None:
    assert ready(mirror) == list(BYTES.values())
    mirror.settings.write_text("not needed again")
    assert ready(mirror) == list(BYTES.values())


def test_nothing_of_the_download_stays_beside_the_jars(mirror: Mirror, tmp_path: Path) -> None:
    ready(mirror)
    assert cached(tmp_path) == ["first-1.0.jar", "second_2.13-2.0.1.jar"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda jar: jar.unlink(), id="deleted"),
        pytest.param(lambda jar: jar.write_bytes(jar.read_bytes()[:-1]), id="truncated"),
        pytest.param(lambda jar: jar.write_bytes(b"X" + jar.read_bytes()[1:]), id="one byte changed"),
    ],
)
def test_a_damaged_jar_is_fetched_again_and_only_that_one(
    mirror: Mirror, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    cache = tmp_path / "cache" / "jars"
    cache.mkdir(parents=True)
    for jar, content in zip(jars.locked("spark-9.8"), BYTES.values(), strict=True):
        (cache / jar.file).write_bytes(content)
    assert jars.missing("spark-9.8") == ()
    damage(cache / "first-1.0.jar")
    assert [jar.file for jar in jars.missing("spark-9.8")] == ["first-1.0.jar"]
    mirror.path("org.two:second_2.13:2.0.1").unlink()
    assert ready(mirror) == list(BYTES.values())


def test_other_bytes_than_the_lock_says_are_refused(
    mirror: Mirror, refused: Callable[[str], None], tmp_path: Path
) -> None:
    mirror.serve("org.two:second_2.13:2.0.1", b"sEcond" * 100)
    refused("other_bytes")
    assert cached(tmp_path) == []


def test_a_download_that_was_cut_short_is_refused(
    mirror: Mirror, refused: Callable[[str], None], tmp_path: Path
) -> None:
    mirror.serve("org.one:first:1.0", BYTES["org.one:first:1.0"][:-1])
    refused("cut_short")
    assert cached(tmp_path) == []


def test_a_registry_s_own_checksum_is_looked_at(mirror: Mirror, refused: Callable[[str], None]) -> None:
    mirror.path("org.one:first:1.0").with_name("first-1.0.jar.sha1").write_text("0" * 40)
    refused("invalid_checksum")


def test_a_mirror_that_lacks_a_jar_is_named_with_its_log(
    mirror: Mirror, refused: Callable[[str], None], tmp_path: Path
) -> None:
    mirror.path("org.one:first:1.0").unlink()
    refused("not_there")
    assert "org.one#first;1.0: not found" in (tmp_path / "cache" / "jars" / "ivy.log").read_text()


POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>org.one</groupId><artifactId>first</artifactId><version>1.0</version><dependencies>
<dependency><groupId>org.three</groupId><artifactId>third</artifactId><version>3.0</version></dependency>
</dependencies></project>"""


def test_only_what_the_lock_names_is_fetched(mirror: Mirror) -> None:
    mirror.path("org.one:first:1.0").with_suffix(".pom").write_text(POM)
    mirror.settings.write_text(mirror.settings.read_text().replace('usepoms="false" ', ""))
    assert ready(mirror) == list(BYTES.values())


@pytest.mark.parametrize(
    ("server", "name"), [("127.0.0.1:{port}", "refused_connection"), ("registry.invalid", "unknown_host")]
)
def test_offline_says_how_to_get_the_jars(
    mirror: Mirror, refused: Callable[[str], None], server: str, name: str
) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        server = server.format(port=nobody_listens.getsockname()[1])
        mirror.settings.write_text(SETTINGS.format(root=f"http://{server}/"))
        refused(name)


def test_broken_ivy_settings_are_told_from_being_offline(mirror: Mirror, refused: Callable[[str], None]) -> None:
    mirror.settings.write_text("<ivysettings")
    refused("broken_settings")
    mirror.settings.unlink()
    refused("no_settings")


def test_no_java_is_said(refused: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused("no_java")


def test_no_pyspark_is_said(refused: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused("no_pyspark")


def test_a_cache_that_cannot_be_written_is_said(refused: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    refused("no_cache")


def test_a_slow_download_says_what_it_does(
    mirror: Mirror, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_TELL_AFTER", 0)
    ready(mirror)
    assert capsys.readouterr().err == "fetching 2 jars (0 MB) once …\n"


def test_a_quick_download_is_silent(
    mirror: Mirror, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_TELL_AFTER", 600)
    ready(mirror)
    assert capfd.readouterr() == ("", "")


FETCH = """
import sys, pathlib
from headrace import jars
jars.LOCKS = pathlib.Path(sys.argv[1])
for jar in jars.spark_jars("9.8.0", ivy_settings=pathlib.Path(sys.argv[2])):
    print(jars.sha256(jar))
"""


def test_two_processes_may_fetch_at_once(mirror: Mirror, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FETCH, str(jars.LOCKS), str(mirror.settings)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    expected = "".join(hashlib.sha256(content).hexdigest() + "\n" for content in BYTES.values())
    assert [process.communicate(timeout=60)[0] for process in both] == [expected, expected]
    assert cached(tmp_path) == ["first-1.0.jar", "second_2.13-2.0.1.jar"]


def test_the_other_process_won_while_this_one_fetched(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    download = ivy.download

    def slower(*args: Any, **settings: Any) -> None:
        download(*args, **settings)
        monkeypatch.setattr(ivy, "download", download)
        ready(mirror)

    monkeypatch.setattr(ivy, "download", slower)
    assert ready(mirror) == list(BYTES.values())


def test_a_spark_without_a_lock_is_refused_with_those_that_have_one(
    golden: Callable[[str, str], None],
) -> None:
    with pytest.raises(SetupError) as caught:
        jars.spark_jars("3.5.1")
    golden("jars/no_lock", str(caught.value))


@pytest.mark.parametrize("name", sorted(path.stem for path in jars.LOCKS.glob("*.lock")))
def test_a_lock_is_well_formed_and_its_files_do_not_collide(name: str) -> None:
    lock = jars.locked(name)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in lock)
    assert len({jar.file for jar in lock}) == len(lock)


def test_jars_of_two_locks_with_one_name_are_the_same_bytes() -> None:
    locks = [jars.locked(path.stem) for path in jars.LOCKS.glob("*.lock")]
    hashes: dict[str, set[str]] = {}
    for jar in (jar for lock in locks for jar in lock):
        hashes.setdefault(jar.file, set()).add(jar.sha256)
    assert [file for file, different in hashes.items() if len(different) > 1] == []


def test_the_installed_spark_has_its_jars() -> None:
    found = jars.spark_jars(version("pyspark"))
    assert [path.name for path in found if path.name.startswith("delta-spark_")] == [
        f"delta-spark_{'.'.join(version('pyspark').split('.')[:2])}_2.13-{version('delta-spark')}.jar"
    ]
    assert all(zipfile.is_zipfile(path) for path in found)


def test_the_cache_follows_its_two_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert jars.cache() == Path("/xdg/headrace")
    monkeypatch.setenv("HEADRACE_CACHE", "~/mine")
    assert jars.cache() == Path.home() / "mine"
