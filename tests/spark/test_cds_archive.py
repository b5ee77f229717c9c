"""The class archive: made by one JVM, found by the next that has the same classes, and by no other."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from headrace.spark import cds_archive


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives lie, in an empty cache."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "classes"


def made_at(options: list[str]) -> Path:
    """The file that a JVM with these options writes when it ends."""
    (option,) = shlex.split(" ".join(options))  # as Spark's launcher does
    name, _, file = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    return Path(file)


def test_the_first_jvm_makes_it_and_the_next_one_uses_it(classes: Path) -> None:
    fresh = made_at(cds_archive.options("a.jar:b.jar", record=True))
    assert fresh.parent == classes
    fresh.write_text("classes")  # by the JVM, as it ends
    cds_archive.keep(whole=True)
    (kept,) = classes.iterdir()
    assert (kept.suffix, kept.read_text()) == (".jsa", "classes")
    options = " ".join(cds_archive.options("a.jar:b.jar", record=True))
    assert shlex.split(options) == [f"-XX:SharedArchiveFile={kept}", "-Xshare:auto"]


def test_another_class_path_has_an_archive_of_its_own(classes: Path) -> None:
    assert (
        made_at(cds_archive.options("a.jar", record=True)).stem
        != made_at(cds_archive.options("b.jar", record=True)).stem
    )


def test_what_another_process_is_making_is_left_alone(classes: Path) -> None:
    fresh = made_at(cds_archive.options("a.jar", record=True))
    other = fresh.with_suffix(f".{os.getpid() + 1}")
    other.write_text("not finished")
    cds_archive.keep(whole=True)
    assert list(classes.iterdir()) == [other]


def test_an_archive_that_is_not_whole_is_thrown_away(classes: Path) -> None:
    made_at(cds_archive.options("a.jar", record=True)).write_text("half")
    cds_archive.keep(whole=False)
    assert list(classes.iterdir()) == []


def test_a_jar_of_other_bytes_has_another_archive(classes: Path, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_text("one")
    before = made_at(cds_archive.options(str(jar), record=True))
    os.utime(jar, (1, 1))
    assert made_at(cds_archive.options(str(jar), record=True)) != before  # Java would not take the one before


def test_those_used_last_are_kept_and_what_a_killed_run_left_goes(
    classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cds_archive, "KEPT", 2)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    files = []
    for age, name in enumerate(("a", "b", "c")):
        fresh = made_at(cds_archive.options(f"{name}.jar", record=True))
        fresh.write_text(name)
        cds_archive.keep(whole=True)
        files.append(fresh.with_suffix(".jsa"))
        os.utime(files[-1], (age, age))
    files[0].with_suffix(f".{gone.pid}").write_text("half")
    cds_archive.options("b.jar", record=True)  # used last
    cds_archive.options("d.jar", record=True)
    assert [file.read_text() for file in classes.iterdir()] == ["b"]


def test_a_cache_that_cannot_be_written_costs_only_the_archive(classes: Path) -> None:
    classes.parent.parent.joinpath("a cache").write_text("in the way")
    assert cds_archive.options("a.jar", record=True) == []


def test_who_does_not_do_a_whole_run_makes_none(classes: Path) -> None:
    assert cds_archive.options("a.jar", record=False) == []
