"""The code in the README and in the documentation is valid, also where no test carries out the page."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile, groupby
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from doc_pages import Block, blocks, change_file
from headrace.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LANGUAGES = {"console", "sh", "yaml", "python", "text", "json", "csv"}
# Programs that lines of `sh` blocks may call, besides headrace and the scripts.
PROGRAMS = {".", "cd", "cp", "export", "git", "jq", "mkdir", "pip", "python", "python3", "rm"}
COMMAND = re.compile(r"`(headrace [^`]+)`")
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="session")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new bundle, as `headrace init weather` creates it."""
    root = tmp_path_factory.mktemp("docs") / "weather"
    created = CliRunner().invoke(main, ["init", "weather", "--into", str(root)])
    assert created.exit_code == 0, created.output
    return root


@by_name
def test_blocks_are_in_a_language_that_a_test_checks(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "a block is indented, or is not closed"
    assert {block.language for block in blocks(page)} <= LANGUAGES


def _shell_lines(block: Block) -> Iterator[str]:
    """Yield the commands of a shell block."""
    if block.language == "sh":
        yield from (line for line in block.text.replace("\\\n", " ").splitlines() if line and not line.startswith("#"))
    elif block.language == "console":
        yield from (command for command, _ in block.commands())


def _programs(line: str) -> Iterator[list[str]]:
    """Yield the words of each program that a line of a shell calls."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    for is_operator, words in groupby(lexer, key=lambda word: set(word) <= set("|&;")):
        if not is_operator:
            yield list(dropwhile(re.compile(r"\w+=").match, words))  # without environment variables


@by_name
def test_commands_exist_and_have_the_options_that_they_are_called_with(page: Path) -> None:
    for block in blocks(page):
        for line in _shell_lines(block):
            for words in _programs(line):
                if words[0] == "headrace":
                    _parse(words[1:])
                elif words[0].startswith("scripts/"):
                    assert (ROOT / words[0]).is_file(), line
                else:
                    assert block.language == "console" or words[0].rpartition("/")[2] in PROGRAMS, line


@by_name
def test_commands_in_the_text_are_valid(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for command in COMMAND.findall(text):
        words = shlex.split(command)
        if len(words) > 1 and words[1] in COMMANDS and not words[1].isupper():
            _parse(words[1:], complete=False)


def _parse(words: list[str], *, complete: bool = True) -> None:
    """Parse a call of headrace without carrying it out. If not `complete`, arguments may be missing."""
    if words[0].startswith("-"):
        return
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, f"headrace {words[0]} does not exist"
    if isinstance(command, click.Group):
        assert len(words) == 1 or words[1] in command.commands, f"headrace {' '.join(words)} does not exist"
        if len(words) == 1:
            return
        command, words = command.commands[words[1]], words[1:]
    try:
        command.make_context(words[0], words[1:])
    except (click.MissingParameter, click.BadOptionUsage, click.exceptions.Exit) as error:
        is_incomplete = isinstance(error, click.MissingParameter) or "requires" in str(error)
        assert "--help" in words or (is_incomplete and not complete), f"{words}: {error}"
    except click.BadParameter as error:
        assert "does not exist" in error.message, f"{words}: {error.message}"  # a file of the page's bundle


@by_name
def test_python_blocks_can_be_parsed(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python" and not block.text.rstrip().endswith(":"):  # a signature has no body
            ast.parse(block.text)


@by_name
def test_yaml_blocks_have_a_file(page: Path) -> None:
    """A test applies these blocks to a bundle. Those of the README are compared with files of the repository."""
    untitled = [block.line for block in blocks(page) if block.language == "yaml" and not block.title]
    assert page.name == "README.md" or not untitled


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name != "guides" and any(block.title for block in blocks(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_changed_files_are_valid_in_a_bundle(page: Path, weather: Path) -> None:
    """Tests carry out the guides, which change files between commands."""
    for block in blocks(page):
        if block.title and block.language != "console":
            change_file(weather / block.title, block.text)
    checked = CliRunner().invoke(main, ["check", "-C", str(weather)])
    assert checked.exit_code == 0, checked.output
