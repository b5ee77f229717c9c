"""`headrace init`: a new bundle, which runs as it is made."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option(
    "--into",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The directory that becomes the bundle; without it, ./NAME.",
)
def init(name: str, directory: Path | None) -> None:
    """Make a new bundle.

    A small one that works as made: a pipeline from bronze to gold with sample data and tests, the configuration of
    four environments, a job, and all that it needs locked, Headrace's own wheel too.
    """
    from headrace.release import scaffold

    place = directory or Path(name)
    scaffold.make(name, place)
    click.echo(f"made the bundle {name} in {place}; next:")
    if place.resolve() != Path.cwd():
        click.echo(f"  cd {shlex.quote(str(place))}")
    click.echo("  scripts/test    # makes the environment the first time")
    click.echo("  scripts/run")
    click.echo("  git init && git add . && git commit -m 'A new bundle'    # a release names its commit")
