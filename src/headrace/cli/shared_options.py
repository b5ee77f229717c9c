"""Options that several commands share: the same word does the same thing everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _pairs(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not name or not separator:
            raise click.BadParameter(f"{text!r} is not of the form name=value", ctx, parameter)
        pairs[name] = value
    return pairs


def environment(default: str | None = "local") -> Callable[[F], F]:
    """--env: which environment; with no default, all of them."""
    said = "The environment." if default else "The environment; without it, all of them."
    return click.option(
        "--env", "environment", metavar="NAME", default=default, show_default=default is not None, help=said
    )


values = click.option(
    "--value",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pairs,
    help="A value that the environment asks for.",
)
root = click.option(
    "--conf",
    "-C",
    "start",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The bundle, or a directory in it; without it, this directory.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
allow_file = click.option(
    "--allow-file",
    "allowed",
    metavar="PATH",
    multiple=True,
    help="Pack this file although it looks like a credential: a path in the bundle. Can be repeated.",
)
break_lock = click.option("--break-lock", is_flag=True, help="Take the lock from whoever holds it.")


def limits(function: F) -> F:
    """--drain and --within: how long a deployment waits."""
    within = _seconds("--within", 1800, "How long a new run may take to be running.")
    stopping = "How long a run may take to stop at its batch's end, before it is cancelled."
    return _seconds("--drain", 300, stopping)(within(function))


def _seconds(name: str, default: float, said: str) -> Callable[[F], F]:
    kind = click.FloatRange(min=0)
    return click.option(name, metavar="SECONDS", type=kind, default=default, show_default=True, help=said)


facts = click.option(
    "-o",
    "as_json",
    type=click.Choice(["text", "json"]),
    default="text",
    callback=lambda ctx, parameter, given: given == "json",
    expose_value=True,
    help="Print text, or JSON for programs.",
)
