"""Test `headrace init`: its output, the files of the bundle, its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main


@pytest.fixture
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(directory: Path, files: Mapping[str, str]) -> None:
    """Write files in a directory."""
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_created_bundle_is_complete_and_has_no_errors(working_directory, without_spark, golden):
    created = run("init", "weather")
    assert (created.exit_code, created.stderr) == (0, "")
    golden("cli/init", created.stdout)
    files = sorted(str(file.relative_to(working_directory)) for file in working_directory.rglob("*") if file.is_file())
    golden("cli/init_files", re.sub(r"headrace-.*\.whl", "headrace-VERSION.whl", "\n".join(files)))

    assert run("check", "-C", "weather").output == "ok: 1 pipeline, 4 steps, 4 environments\n"
    built = run("build", "-C", "weather").output.splitlines()
    (vendored,) = (working_directory / "weather" / "vendor").iterdir()
    assert re.fullmatch(r"  wheel  weather-0\.1\.0\+g\w{8}-py3-none-any\.whl", built[-1])
    assert built[-2] == f"  wheel  {vendored.name}"


def test_empty_git_repository_becomes_the_bundle(working_directory, golden):
    (working_directory / ".git").mkdir()
    created = run("init", "weather", "--into", ".")
    assert created.exit_code == 0, created.stderr
    golden("cli/init_here", created.stdout)
    assert {".git", ".gitignore", "conf", "pyproject.toml"} < {path.name for path in working_directory.iterdir()}
    assert not list(working_directory.glob(".creating-*"))


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("invalid_name", "Weather-Report"),
        ("yaml_keyword", "on"),
        ("python_module", "calendar"),
        ("headrace_module", "headrace_shop"),
        ("required_module", "delta"),
    ],
)
def test_invalid_or_taken_name_is_an_error(working_directory, golden, case, name):
    failed = run("init", name)
    assert (failed.exit_code, failed.stdout) == (1, "")
    golden(f"cli/init_{case}", failed.stderr)
    assert list(working_directory.iterdir()) == []


def test_repository_with_other_files_becomes_a_bundle(working_directory, golden):
    existing = {"README.md": "mine", ".gitignore": "*.log", ".github/workflows/ci.yml": "on: push", "src/tool/a.py": ""}
    existing |= {".vscode/settings.json": "{}", "tests/test_tool.py": ""}
    _write(working_directory, existing)
    created = run("init", "weather", "--into", ".")
    assert created.exit_code == 0, created.stderr
    golden("cli/init_existing", created.stdout)
    assert {name: (working_directory / name).read_text() for name in existing} == existing
    assert run("check").output == "ok: 1 pipeline, 4 steps, 4 environments\n"
    assert not list(working_directory.glob(".creating-*"))


@pytest.mark.parametrize(
    ("case", "existing"),
    [
        ("file_for_directory", {"scripts": "a file", "README.md": "mine"}),
        ("occupied_directory", {"conf/app.yml": "port: 80", "tests/test_pipeline.py": ""}),
        ("occupied_files", dict.fromkeys(("pyproject.toml", "databricks.yml", "vendor/a.whl", "data/a.csv"), "mine")),
        (
            "occupied_many",
            dict.fromkeys((f"scripts/{name}" for name in ("env", "run", "test", "lock")), "")
            | dict.fromkeys(("pyproject.toml", "databricks.yml", "requirements.lock"), ""),
        ),
    ],
)
def test_files_that_the_bundle_needs_are_not_replaced(working_directory, golden, case, existing):
    _write(working_directory / "weather", existing)
    failed = run("init", "weather")
    assert (failed.exit_code, failed.stdout) == (1, "")
    golden(f"cli/init_{case}", failed.stderr)
    files = [file for file in working_directory.rglob("*") if file.is_file()]
    assert {str(file.relative_to(working_directory / "weather")): file.read_text() for file in files} == existing


def test_file_in_place_of_the_directory_is_an_error(working_directory, golden):
    (working_directory / "weather").write_text("a file")
    failed = run("init", "weather")
    assert (failed.exit_code, failed.stdout) == (1, "")
    golden("cli/init_file", failed.stderr)


def test_missing_parent_directory_is_an_error(working_directory, golden):
    failed = run("init", "weather", "--into", "jobs/weather")
    assert (failed.exit_code, failed.stdout) == (1, "")
    golden("cli/init_no_parent", failed.stderr)
    assert list(working_directory.iterdir()) == []
