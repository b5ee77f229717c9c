"""`headrace init`: what it says, what is there afterwards, and what it refuses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, in which the commands are typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_bundle_is_whole_and_without_mistakes(here, golden):
    made = run("init", "weather")
    assert (made.exit_code, made.stderr) == (0, "")
    golden("cli/init", made.stdout)
    files = sorted(str(file.relative_to(here)) for file in here.rglob("*") if file.is_file())
    golden("cli/init_files", re.sub(r"headrace-.*\.whl", "headrace-VERSION.whl", "\n".join(files)))

    assert run("check", "-C", "weather").output == "ok: 1 pipeline, 4 steps, 4 environments\n"
    built = run("build", "-C", "weather").output.splitlines()
    (vendored,) = (here / "weather" / "vendor").iterdir()
    assert re.fullmatch(r"  wheel  weather-0\.1\.0\+g\w{8}-py3-none-any\.whl", built[-1])
    assert built[-2] == f"  wheel  {vendored.name}"


def test_a_clone_of_an_empty_repository_becomes_the_bundle(here, golden):
    (here / ".git").mkdir()
    made = run("init", "weather", "--into", ".")
    assert made.exit_code == 0, made.stderr
    golden("cli/init_here", made.stdout)
    assert {".git", ".gitignore", "conf", "pyproject.toml"} < {part.name for part in here.iterdir()}
    assert not list(here.glob(".making-*"))


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("not_a_name", "Weather-Report"),
        ("a_word_of_yaml", "on"),
        ("a_module_of_python", "calendar"),
        ("a_module_of_headrace", "headrace_shop"),
        ("a_module_it_needs", "delta"),
    ],
)
def test_a_name_that_cannot_be(here, golden, case, name):
    refused = run("init", name)
    assert (refused.exit_code, refused.stdout) == (1, "")
    golden(f"cli/init_{case}", refused.stderr)
    assert list(here.iterdir()) == []


def test_a_directory_that_holds_something_stays_as_it_is(here, golden):
    (here / "weather").mkdir()
    (here / "weather" / "notes.txt").write_text("mine")
    refused = run("init", "weather")
    assert (refused.exit_code, refused.stdout) == (1, "")
    golden("cli/init_not_empty", refused.stderr)
    assert [str(file.relative_to(here)) for file in here.rglob("*")] == ["weather", "weather/notes.txt"]
    shutil.rmtree(here / "weather")
    (here / "weather").write_text("a file")
    assert run("init", "weather").stderr == refused.stderr


def test_a_directory_in_none(here, golden):
    refused = run("init", "weather", "--into", "jobs/weather")
    assert (refused.exit_code, refused.stdout) == (1, "")
    golden("cli/init_no_parent", refused.stderr)
    assert list(here.iterdir()) == []
