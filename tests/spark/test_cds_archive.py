"""The class archive: created by one JVM, and used by later ones with the same class path."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from headrace.spark import cds_archive


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of archives, in an empty cache."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "classes"


def created_file(options: list[str]) -> Path:
    """Return the file that a JVM with these options writes when it exits."""
    (option,) = shlex.split(" ".join(options))  # as Spark's launcher splits them
    name, _, file = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    return Path(file)


def test_archive_is_created_by_one_jvm_and_used_by_the_next(classes: Path) -> None:
    created = created_file(cds_archive.options("a.jar:b.jar", record_class_archive=True))
    assert created.parent == classes
    created.write_text("classes")  # the JVM does this when it exits
    cds_archive.publish(complete=True)
    (archive,) = classes.iterdir()
    assert (archive.suffix, archive.read_text()) == (".jsa", "classes")
    options = " ".join(cds_archive.options("a.jar:b.jar", record_class_archive=True))
    assert shlex.split(options) == [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]


def test_archive_depends_on_class_path(classes: Path) -> None:
    assert (
        created_file(cds_archive.options("a.jar", record_class_archive=True)).stem
        != created_file(cds_archive.options("b.jar", record_class_archive=True)).stem
    )


def test_unfinished_archives_of_running_processes_are_kept(classes: Path) -> None:
    created = created_file(cds_archive.options("a.jar", record_class_archive=True))
    other = created.with_suffix(f".{os.getpid() + 1}")
    other.write_text("not finished")
    cds_archive.publish(complete=True)
    assert list(classes.iterdir()) == [other]


def test_incomplete_archive_is_deleted(classes: Path) -> None:
    created_file(cds_archive.options("a.jar", record_class_archive=True)).write_text("half")
    cds_archive.publish(complete=False)
    assert list(classes.iterdir()) == []


def test_archive_depends_on_modification_time_of_jars(classes: Path, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_text("one")
    before = created_file(cds_archive.options(str(jar), record_class_archive=True))
    os.utime(jar, (1, 1))
    assert (
        created_file(cds_archive.options(str(jar), record_class_archive=True)) != before
    )  # Java would not accept the old archive


def test_least_recently_used_and_unfinished_archives_are_deleted(
    classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cds_archive, "MAX_ARCHIVES", 2)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    files = []
    for age, name in enumerate(("a", "b", "c")):
        created = created_file(cds_archive.options(f"{name}.jar", record_class_archive=True))
        created.write_text(name)
        cds_archive.publish(complete=True)
        files.append(created.with_suffix(".jsa"))
        os.utime(files[-1], (age, age))
    files[0].with_suffix(f".{ended.pid}").write_text("half")
    cds_archive.options("b.jar", record_class_archive=True)  # marks it as used last
    cds_archive.options("d.jar", record_class_archive=True)
    assert [file.read_text() for file in classes.iterdir()] == ["b"]


def test_unwritable_cache_is_not_an_error(classes: Path) -> None:
    classes.parent.parent.joinpath("a cache").write_text("in the way")
    assert cds_archive.options("a.jar", record_class_archive=True) == []


def test_no_archive_is_created_without_record(classes: Path) -> None:
    assert cds_archive.options("a.jar", record_class_archive=False) == []
