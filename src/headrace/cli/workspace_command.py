"""`headrace workspace`: a workspace on this machine, to try deployments on without an account."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from headrace.cli.help_examples import examples


@click.command(epilog=examples("headrace workspace", "headrace workspace --port 7172 --verbose"))
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".headrace/workspace"),
    show_default=True,
    help="Where it keeps files, jobs and tables; they are there again the next time.",
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=7171, show_default=True, help="0 takes a free one."
)
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each call.")
def workspace(directory: Path, port: int, verbose: bool) -> None:
    """Serve a Databricks workspace on this machine.

    Jobs deployed to it run their wheels with local Spark. It answers on 127.0.0.1 only, until Ctrl-C, and accepts only
    the token that it prints. Each start makes a new token.
    """
    from headrace.testing.workspace import LocalWorkspace

    with LocalWorkspace(directory, port, watch=click.echo if verbose else None) as running:
        click.echo(f"workspace: {running.url}, kept in {directory}")
        click.echo("in another terminal:")
        click.echo(f"  export DATABRICKS_HOST={running.url}")
        click.echo(f"  export DATABRICKS_TOKEN={running.token}")
        click.echo("Ctrl-C ends it and the runs in it")
        signal.pause()
