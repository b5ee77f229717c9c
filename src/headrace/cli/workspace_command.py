"""`headrace workspace`: a local Databricks workspace, to try deployments without an account."""

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
    help="Directory for files, jobs and tables. The next start with this directory serves them again.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=7171,
    show_default=True,
    help="Port to serve on; 0 selects a free port.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each call.")
def workspace(directory: Path, port: int, verbose: bool) -> None:
    """Serve a Databricks workspace on this machine.

    Jobs deployed to the workspace run their wheels with local Spark. The workspace serves on 127.0.0.1 only, until
    Ctrl-C, and accepts only the token that this command prints. Each start creates a new token.
    """
    from headrace.testing.workspace import LocalWorkspace

    with LocalWorkspace(directory, port, watch=click.echo if verbose else None) as running:
        click.echo(f"Workspace: {running.url}, stored in {directory}")
        click.echo("In another terminal:")
        click.echo(f"  export DATABRICKS_HOST={running.url}")
        click.echo(f"  export DATABRICKS_TOKEN={running.token}")
        click.echo("Press Ctrl-C to stop the workspace and its runs.")
        signal.pause()
