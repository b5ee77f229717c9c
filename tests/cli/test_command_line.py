"""Test `headrace` itself: its help, wrong usage, interrupts."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace import __version__
from headrace.cli import COMMANDS, TASKS, main

REPOSITORY = Path(__file__).parents[2]


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout, result.stderr


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, click.Command)
    return command


def _examples(*arguments: str) -> list[str]:
    """Return the lines of the last section of a help text, which has to be that of the examples."""
    code, out, _ = _run(*arguments, "--help")
    assert code == 0
    title, *lines = out.rstrip().rpartition("\n\n")[2].splitlines()
    assert title.strip() in ("Example:", "Examples:")
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chek"], "No such command 'chek': did you mean 'check'?"),
        (["xyz"], "No such command 'xyz'."),
        (["check", "--evn", "dev"], "Did you mean"),
        (["check", "--value", "user"], "'user' is not of the form name=value"),
        (["check", "-C", "/nowhere"], "does not exist"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str) -> None:
    code, out, err = _run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage:")
    assert message in err


def test_similar_option_is_suggested() -> None:
    assert "--env" in _run("check", "--evn", "dev")[2].splitlines()[-1]


def test_interrupt_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command
    def check() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.cli.check_command.check", check)
    assert _run("check") == (130, "", "Stopped.\n")


def test_version() -> None:
    assert _run("--version") == (0, f"headrace {__version__} (Spark 4.1 or 4.2, Delta 4.4.0)\n", "")


def test_help_lists_every_command_with_the_first_line_of_its_help() -> None:
    listed = " ".join(_run("--help")[1].split())
    for name, summary in COMMANDS.items():
        assert (_command(name).help or "").splitlines()[0] == summary
        assert f"{name} " in listed and summary in listed


def test_help_groups_the_commands_by_task(golden: Callable[[str, str], None]) -> None:
    assert sum(map(len, TASKS.values())) == len(COMMANDS)
    golden("cli/help", CliRunner().invoke(main, ["--help"], prog_name="headrace").stdout)


def test_help_imports_neither_pydantic_nor_yaml_nor_spark_nor_commands() -> None:
    help_run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "headrace", "--help"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert help_run.returncode == 0
    assert all(f"{task}:" in help_run.stdout for task in TASKS)
    modules = {line.rpartition("|")[2].strip() for line in help_run.stderr.splitlines()}
    packages = {module.split(".")[0] for module in modules}
    assert "click" in packages
    assert not packages & {"pydantic", "yaml", "pyspark", "rich"}
    assert not [module for module in modules if module.endswith(("_command", "_commands"))]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_a_command_ends_with_examples_that_can_be_parsed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").touch()  # an option takes only an existing file
    for example in _examples(name):
        program, command, *arguments = shlex.split(example)
        assert (program, command) == ("headrace", name)
        _command(name).make_context(name, arguments)


def test_help_of_headrace_ends_with_examples() -> None:
    for example in _examples():
        assert shlex.split(example)[0] == "headrace"
        assert shlex.split(example)[1] in COMMANDS


def test_closed_pipe_prints_no_traceback() -> None:
    command = f"{sys.executable} -m headrace graph -o json | head -n 1"
    piped = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert (piped.stdout, piped.stderr) == ("{\n", "")
