"""Finding Java, its version, and the available memory."""

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


def write_java(home: Path, body: str) -> Path:
    path = home / "bin" / "java"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def assert_error(home: Path, golden: Callable[[str, str], None]) -> Callable[[str], None]:
    """Require Java, and compare the error with a golden file."""

    def check(name: str) -> None:
        with pytest.raises(SetupError) as error:
            java.require()
        golden(f"java/{name}", str(error.value).replace(str(home), "HOME"))

    return check


def test_java_from_path(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(home / "bin"))
    path = write_java(home, """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    assert java.executable() == path
    assert java.require() == "17.0.1"


def test_java_home_takes_precedence_over_path(home: Path) -> None:
    path = write_java(home, """echo 'openjdk version "21" 2023-09-19' >&2""")
    assert java.executable() == path
    assert java.require() == "21"


def test_version_is_read_from_release_file_without_starting_java(home: Path) -> None:
    write_java(home, "touch $0.started")
    (home / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="21.0.4"\n')
    assert java.require() == "21.0.4"
    assert not (home / "bin" / "java.started").exists()


def test_missing_java_is_an_error(assert_error: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert_error("not_installed")


def test_java_home_without_java_is_an_error(assert_error: Callable[[str], None]) -> None:
    assert_error("java_home_without_java")


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "version_11"),
        ('java version "1.8.0_411"', "version_8"),
        ('openjdk version "25-ea" 2025-09-16', "version_25"),
    ],
)
def test_unsupported_java_version_is_an_error(
    home: Path, assert_error: Callable[[str], None], output: str, name: str
) -> None:
    write_java(home, f"echo '{output}' >&2")
    assert_error(name)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("echo; echo 'Unable to locate a Java Runtime.' >&2; exit 1", "no_version"),
        ("exit 1", "no_output"),
    ],
)
def test_java_without_version_output_is_an_error(
    home: Path, assert_error: Callable[[str], None], body: str, name: str
) -> None:
    write_java(home, body)
    assert_error(name)


def test_java_that_cannot_be_run_is_an_error(home: Path, assert_error: Callable[[str], None]) -> None:
    write_java(home, "").write_text("#!/no/such/interpreter\n")
    assert_error("not_executable")


def test_update_of_java_changes_its_identity(home: Path) -> None:
    path = write_java(home, "")
    before = java.identity()
    assert java.identity() == before
    os.utime(path, (1, 1))
    assert java.identity() != before


def memory_available(monkeypatch: pytest.MonkeyPatch, directory: Path, *, limit: str | None) -> int | None:
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
        pytest.param("2048000", 2_024_000, id="limit of the container, excluding its file cache"),
        pytest.param("9999999999", 4_096_000, id="limit above the machine's memory"),
        pytest.param("1000", 0, id="limit exceeded"),
    ],
)
def test_memory_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str | None, available: int) -> None:
    assert memory_available(monkeypatch, tmp_path, limit=limit) == available


def test_unknown_free_memory_is_not_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "MEMINFO", tmp_path / "absent")
    assert java.memory_available() is None
    assert java.require_memory("2g") == "2g needed; free memory is unknown on this system"


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    monkeypatch.setattr(java, "memory_available", lambda: 2 << 30)
    assert java.require_memory("2g") == "2g needed, 2048m free"
    assert java.require_memory("2048m") == "2048m needed, 2048m free"
    with pytest.raises(SetupError) as error:
        java.require_memory("2049m")
    golden("java/too_little_memory", str(error.value))
