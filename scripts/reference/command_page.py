"""The reference page of the commands: their help texts."""

from __future__ import annotations

from collections.abc import Iterator

import click
from markdown_text import code, page

from headrace.cli import TASKS, main

INTRODUCTION = """
`headrace COMMAND --help` prints the same texts. Every command exits with 0 on success, with 1 after an error, which is
printed with its fix, and with 2 after wrong usage. `plan --exit-code` exits with 3 if there are changes. A command that a
signal ends exits with 128 plus the number of the signal; a run that stops between two batches exits with 0.
"""


def make_command_page() -> str:
    """Return the page."""
    return page("Commands", INTRODUCTION, _sections())


def _sections() -> Iterator[str]:
    root = click.Context(main, info_name="headrace", max_content_width=100, terminal_width=100)
    for task, names in TASKS.items():
        yield f"## {task}"
        for name in names:
            command = main.get_command(root, name)
            assert command is not None
            yield from _command(command, name, root)


def _command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    """Yield the section of a command, and those of its subcommands."""
    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    yield f"### {context.command_path.removeprefix('headrace ')}"
    yield code(command.get_help(context))
    if isinstance(command, click.Group):
        for subcommand, each in command.commands.items():
            yield from _command(each, subcommand, context)
