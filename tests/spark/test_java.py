"""Which Java is found, whether it will do, and how much memory it can have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import SetupError
from headrace.spark import java


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty JAVA_HOME."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def script(home: Path, body: str) -> Path:
    path = home / "bin" / "java"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def refused(home: Path, golden: Callable[[str, str], None]) -> Callable[[str], None]:
    """Asks for a Java, and compares the refusal with a golden file."""

    def ask(name: str) -> None:
        with pytest.raises(SetupError) as caught:
            java.require()
        golden(f"java/{name}", str(caught.value).replace(str(home), "HOME"))

    return ask


def test_the_java_on_the_path_is_taken(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(home / "bin"))
    path = script(home, """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    assert java.executable() == path
    assert java.require() == "17.0.1"


def test_java_home_goes_before_the_path(home: Path) -> None:
    path = script(home, """echo 'openjdk version "21" 2023-09-19' >&2""")
    assert java.executable() == path
    assert java.require() == "21"


def test_the_release_file_answers_without_starting_java(home: Path) -> None:
    script(home, "touch $0.started")
    (home / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="21.0.4"\n')
    assert java.require() == "21.0.4"
    assert not (home / "bin" / "java.started").exists()


def test_no_java_at_all(refused: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    refused("none")


def test_a_java_home_without_java(refused: Callable[[str], None]) -> None:
    refused("home_without_java")


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is_11"),
        ('java version "1.8.0_411"', "is_8"),
        ('openjdk version "25-ea" 2025-09-16', "is_25"),
    ],
)
def test_a_wrong_java(home: Path, refused: Callable[[str], None], answer: str, name: str) -> None:
    script(home, f"echo '{answer}' >&2")
    refused(name)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("echo; echo 'Unable to locate a Java Runtime.' >&2; exit 1", "tells_no_version"),
        ("exit 1", "says_nothing"),
    ],
)
def test_a_java_that_does_not_tell_its_version(
    home: Path, refused: Callable[[str], None], body: str, name: str
) -> None:
    script(home, body)
    refused(name)


def test_a_java_that_does_not_run(home: Path, refused: Callable[[str], None]) -> None:
    script(home, "").write_text("#!/no/such/interpreter\n")
    refused("does_not_run")


def test_an_update_changes_the_identity(home: Path) -> None:
    path = script(home, "")
    before = java.identity()
    assert java.identity() == before
    os.utime(path, (1, 1))
    assert java.identity() != before


def told(monkeypatch: pytest.MonkeyPatch, directory: Path, *, limit: str | None) -> int | None:
    (directory / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:  4000 kB\n")
    if limit is not None:
        (directory / "memory.max").write_text(f"{limit}\n")
        (directory / "memory.current").write_text("1024000\n")
        (directory / "memory.stat").write_text("anon 24000\ninactive_file 1000000\n")
    monkeypatch.setattr(java, "MEMINFO", directory / "meminfo")
    monkeypatch.setattr(java, "CGROUPS", directory)
    return java.memory_available()


@pytest.mark.parametrize(
    ("limit", "available"),
    [
        pytest.param(None, 4_096_000, id="no container"),
        pytest.param("max", 4_096_000, id="no limit"),
        pytest.param("2048000", 2_024_000, id="the container's limit, its file cache not counted"),
        pytest.param("9999999999", 4_096_000, id="a limit beyond the machine"),
        pytest.param("1000", 0, id="over the limit"),
    ],
)
def test_memory_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str | None, available: int) -> None:
    assert told(monkeypatch, tmp_path, limit=limit) == available


def test_a_system_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "MEMINFO", tmp_path / "absent")
    assert java.memory_available() is None
    assert java.require_memory("2g") == "2g wanted; this system does not say how much is free"


def test_memory_wanted_against_memory_there_is(
    monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    monkeypatch.setattr(java, "memory_available", lambda: 2 << 30)
    assert java.require_memory("2g") == "2g wanted, 2048m free"
    assert java.require_memory("2048m") == "2048m wanted, 2048m free"
    with pytest.raises(SetupError) as caught:
        java.require_memory("2049m")
    golden("java/memory", str(caught.value))
