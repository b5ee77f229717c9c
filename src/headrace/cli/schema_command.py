"""`headrace schema`: write the JSON Schemas of the configuration for editors."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples
from headrace.config.schema_files import KINDS


@click.command(epilog=examples("headrace schema", "headrace schema pipeline"))
@click.argument("kind", type=click.Choice(KINDS), required=False)
@shared_options.bundle_dir
def schema(kind: str | None, bundle_dir: Path) -> None:
    """Write the schemas for editors.

    Writes the JSON Schemas of pipeline and environment files into the bundle's directory `schemas`, which the files of
    a new bundle refer to. Repeat it after an upgrade of Headrace. With KIND, prints one of them instead.
    """
    from headrace.config import schema_files
    from headrace.config.load import find_root

    if kind:
        click.echo(schema_files.schema(kind), nl=False)
        return
    for file in schema_files.write_schemas(find_root(bundle_dir)):
        click.echo(f"wrote {file}")
