"""`headrace` itself, and `headrace check`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace import __version__
from headrace.cli import COMMANDS, main

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

BAD = {"conf/pipelines/p.yml": "steps:\n  land: {layer: bronze, reads: {rows: {source: tick}}, writes: {table: a}}\n"}
NOT_THERE = (
    "steps:\n  land: {layer: bronze, reads: {rows: {source: ticks}}, transform: nowhere:f, writes: {table: a}}\n"
)


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout, result.stderr


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)


def test_the_repository_is_ok() -> None:
    assert _run("check", "-C", str(REPOSITORY)) == (0, "ok: 1 pipeline, 4 steps, 4 environments\n", "")


def test_one_environment(golden: Golden) -> None:
    where = ("-C", str(REPOSITORY))
    assert _run("check", "--env", "prod", *where) == (0, "ok: 1 pipeline, 4 steps, 1 environment\n", "")
    assert _run("check", "--env", "dev", "--value", "user=ann", *where)[0] == 0
    code, out, err = _run("check", "--env", "dev", *where)
    assert (code, out) == (1, "")
    golden("cli/check_value", err)


def test_problems_go_to_stderr(write_bundle: WriteBundle, golden: Golden) -> None:
    code, out, err = _run("check", "-C", str(write_bundle(BAD)))
    assert (code, out) == (1, "")
    golden("cli/check_problems", err)


def test_a_function_that_is_not_there(write_bundle: WriteBundle, golden: Golden) -> None:
    code, _, err = _run("check", "-C", str(write_bundle({"conf/pipelines/p.yml": NOT_THERE})))
    assert code == 1
    golden("cli/check_function", err)


def test_functions_are_checked_beside_everything_else(write_bundle: WriteBundle, golden: Golden) -> None:
    files = {"conf/pipelines/p.yml": NOT_THERE, "conf/local.yml": "engine: {kind: lokal}\n"}
    code, _, err = _run("check", "-C", str(write_bundle(files)))
    assert code == 1
    golden("cli/check_everything", err)


def test_a_function_that_is_not_checked_is_a_note(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/pipelines/p.yml": NOT_THERE, "src/nowhere.py": "f = print\n"})
    code, out, err = _run("check", "-C", str(root))
    assert (code, err) == (0, "")
    golden("cli/check_note", out)


def test_json(write_bundle: WriteBundle) -> None:
    code, out, _ = _run("check", "-C", str(REPOSITORY), "-o", "json")
    found = json.loads(out)
    assert (code, found["ok"], found["problems"], found["pipelines"]) == (0, True, [], ["orders"])
    assert found["environments"] == ["dev", "local", "prod", "staging"]
    code, out, err = _run("check", "-C", str(write_bundle(BAD)), "-o", "json")
    assert (code, err) == (1, "")
    assert json.loads(out) == {
        "ok": False,
        "notes": [],
        "environments": ["local"],
        "pipelines": ["p"],
        "problems": [
            {
                "where": "conf/pipelines/p.yml:2",
                "message": "step 'land' reads unknown source 'tick' (environment 'local')",
                "fix": "did you mean 'ticks'?",
            }
        ],
    }


def test_outside_of_a_bundle(tmp_path: Path) -> None:
    code, _, err = _run("check", "-C", str(tmp_path))
    assert code == 1
    assert "there is no bundle here" in err and "--conf" in err


@pytest.mark.parametrize(
    "arguments", [["chek"], ["check", "--evn", "dev"], ["check", "--value", "user"], ["check", "-C", "/nowhere"]]
)
def test_wrong_usage_is_two(arguments: list[str]) -> None:
    code, out, err = _run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage:")


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command
    def check() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.cli.check_command.check", check)
    assert _run("check") == (130, "", "Stopped.\n")


def test_version() -> None:
    assert _run("--version") == (0, f"headrace {__version__}\n", "")


def test_help_lists_every_command_in_its_own_words() -> None:
    listed = " ".join(_run("--help")[1].split())
    for name, words in COMMANDS.items():
        command = main.get_command(click.Context(main), name)
        assert isinstance(command, click.Command)
        assert (command.help or "").splitlines()[0] == words
        assert f"{name} " in listed and words in listed


def test_help_imports_neither_pydantic_nor_yaml_nor_spark() -> None:
    done = _python("-X", "importtime", "-m", "headrace", "--help")
    assert done.returncode == 0
    assert "Commands:" in done.stdout
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"pydantic", "yaml", "pyspark", "rich"}


def test_check_imports_no_spark_and_nothing_of_the_users() -> None:
    done = _python("-X", "importtime", "-m", "headrace", "check")
    assert (done.returncode, done.stdout) == (0, "ok: 1 pipeline, 4 steps, 4 environments\n")
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert not imported & {"pyspark", "headrace_shop", "rich", "py4j", "databricks"}


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m headrace graph -o json | head -n 1"
    done = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("{\n", "")
