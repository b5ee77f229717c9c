"""The class archive: made by one JVM, found by the next that has the same classes, and by no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace import archive


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives lie, in an empty cache."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    return tmp_path / "classes"


def made_at(options: list[str]) -> Path:
    """The file that a JVM with these options writes when it ends."""
    (option,) = options
    name, _, file = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    return Path(file)


def test_the_first_jvm_makes_it_and_the_next_one_uses_it(classes: Path) -> None:
    fresh = made_at(archive.options("a.jar:b.jar", record=True))
    assert fresh.parent == classes
    fresh.write_text("classes")  # by the JVM, as it ends
    archive.keep(whole=True)
    (kept,) = classes.iterdir()
    assert (kept.suffix, kept.read_text()) == (".jsa", "classes")
    assert archive.options("a.jar:b.jar", record=True) == [f"-XX:SharedArchiveFile={kept}", "-Xshare:auto"]


def test_another_class_path_has_an_archive_of_its_own(classes: Path) -> None:
    assert made_at(archive.options("a.jar", record=True)).stem != made_at(archive.options("b.jar", record=True)).stem


def test_what_another_process_is_making_is_left_alone(classes: Path) -> None:
    fresh = made_at(archive.options("a.jar", record=True))
    other = fresh.with_suffix(f".{os.getpid() + 1}")
    other.write_text("not finished")
    archive.keep(whole=True)
    assert list(classes.iterdir()) == [other]


def test_an_archive_that_is_not_whole_is_thrown_away(classes: Path) -> None:
    made_at(archive.options("a.jar", record=True)).write_text("half")
    archive.keep(whole=False)
    assert list(classes.iterdir()) == []


def test_who_does_not_do_a_whole_run_makes_none(classes: Path) -> None:
    assert archive.options("a.jar", record=False) == []
