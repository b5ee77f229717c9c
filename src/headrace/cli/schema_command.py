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

    Writes the JSON Schemas of pipeline and environment files, with which editors complete and check keys, into the
    bundle's directory `schemas`. Files that `headrace init` has created refer to them. Run this command again after
    each upgrade of Headrace. With `pipeline` or `environment`, prints this schema, and writes no files.
    """
    from headrace.config import schema_files
    from headrace.config.load import find_root

    if kind:
        click.echo(schema_files.schema(kind), nl=False)
        return
    for file in schema_files.write_schemas(find_root(bundle_dir)):
        click.echo(f"wrote {file}")
