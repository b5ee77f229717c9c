"""Options that several commands share, so that each option has the same meaning in every command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _parse_pairs(ctx: click.Context, parameter: click.Parameter, arguments: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not name or not separator:
            raise click.BadParameter(f"{argument!r} is not of the form name=value", ctx, parameter)
        pairs[name] = value
    return pairs


def environment(default: str | None = "local") -> Callable[[F], F]:
    """Return the option --env with this default. If `default` is None, the default is all environments."""
    help_text = "The environment." if default else "The environment; by default all of them."
    return click.option(
        "--env", "environment", metavar="NAME", default=default, show_default=default is not None, help=help_text
    )


values = click.option(
    "--value",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_pairs,
    help="Set a value that the environment's file declares. Can be repeated.",
)
bundle_dir = click.option(
    "--conf",
    "-C",
    "bundle_dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The bundle, or a directory in it; by default the current directory.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
allow_file = click.option(
    "--allow-file",
    "allowed_files",
    metavar="PATH",
    multiple=True,
    help="Pack this file of the bundle into the release although it looks like a credential. Can be repeated.",
)
adopt = click.option(
    "--adopt",
    "adopted_jobs",
    metavar="JOB",
    multiple=True,
    help="Take over the job that has the name, or the pipeline and checkpoints, of this job. Can be repeated.",
)
break_lock = click.option("--break-lock", is_flag=True, help="Take over the deployment lock of another command.")


def _seconds_option(name: str, default_s: float, help_text: str) -> Callable[[F], F]:
    not_negative = click.FloatRange(min=0)
    return click.option(
        name, metavar="SECONDS", type=not_negative, default=default_s, show_default=True, help=help_text
    )


drain = _seconds_option(
    "--drain",
    300,
    "How long a run may take to finish its batches and stop. Then a run of a deployed job is cancelled.",
)
within = _seconds_option(
    "--within", 1800, "How long a new run may take until each step has committed a batch or has nothing to read."
)
idle = _seconds_option(
    "--idle", 30, "How long a step without a batch must have had nothing to read, so that it counts as working."
)
watch = _seconds_option("--watch", 600, "How long new runs are watched once they work; a job that fails is restored.")
output_format = click.option(
    "-o",
    "as_json",
    type=click.Choice(["text", "json"]),
    default="text",
    callback=lambda ctx, parameter, choice: choice == "json",
    help="Print text, or JSON for programs.",
)
