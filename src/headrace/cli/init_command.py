"""`headrace init`: create a bundle that can be run as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headrace.cli.help_examples import examples


@click.command(epilog=examples("headrace init weather", "headrace init weather --into ."))
@click.argument("name")
@click.option(
    "--into",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The directory of the bundle, by default ./NAME. It may be a repository with other files.",
)
def init(name: str, directory: Path | None) -> None:
    """Create a bundle.

    The bundle can be run and tested as it is. It contains a pipeline from bronze to gold with sample data
    and tests, the configuration of four environments, a job, locked dependencies, and Headrace's own wheel.
    An existing README, .gitignore and editor settings are left alone.
    """
    from headrace.release import scaffold

    bundle_dir = directory or Path(name)
    left_alone = scaffold.create_bundle(name, bundle_dir)
    click.echo(f"created bundle {name} in {bundle_dir}")
    for file in left_alone:
        click.echo(f"left alone {file}: {scaffold.OPTIONAL_FILES[file]}")
    click.echo("next:")
    if bundle_dir.resolve() != Path.cwd():
        click.echo(f"  cd {shlex.quote(str(bundle_dir))}")
    click.echo("  scripts/test    # the first time, this creates the virtual environment")
    click.echo("  scripts/run")
    comment = "# a release records the commit that it was built from"
    parents = (bundle_dir.resolve(), *bundle_dir.resolve().parents)
    git = "git add ." if any((parent / ".git").exists() for parent in parents) else "git init && git add ."
    click.echo(f"  {git} && git commit -m 'A new bundle'    {comment}")
