"""`headrace show`: the rows of a table, its quarantine, its size."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options

if TYPE_CHECKING:
    from headrace.observe.table_info import TableInfo


@click.command()
@click.argument("table")
@shared_options.environment()
@click.option("--quarantine", is_flag=True, help="Show the rows that were refused instead.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many rows.")
@shared_options.values
@shared_options.root
@shared_options.facts
def show(
    table: str,
    environment: str,
    quarantine: bool,
    limit: int,
    values: dict[str, str],
    start: Path,
    as_json: bool,
) -> None:
    """Show the rows of a table.

    Its newest rows, its size and version; with --quarantine the rows that its step refused, with reasons.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.observe import table_info
    from headrace.spark import session

    bundle = load_bundle(find_root(start), environment, values)
    name = table_info.resolve_table_name(bundle, table, quarantine=quarantine)
    with session.bundle_session(bundle, name=f"show {name}") as spark:
        seen = table_info.table_info(spark, bundle, name, limit=limit)
    click.echo(json.dumps(seen.facts(), default=str) if as_json else text(seen))


def text(look: TableInfo) -> str:
    """The table as a person reads it."""
    from rich.console import Console
    from rich.table import Table

    shown = Table()
    for column in look.columns:
        shown.add_column(column, overflow="fold")
    for row in look.rows:
        shown.add_row(*("" if value is None else str(value) for value in row))
    width = None if sys.stdout.isatty() else 200
    console = Console(width=width, markup=False, emoji=False)  # data may hold [/b] or :cat:
    with console.capture() as captured:
        console.print(shown)
    size = f"{look.count} rows, {look.files} files, {look.size / 1e6:.1f} MB, version {look.version}"
    open_windows = f"\n{look.open_windows} windows are still open, counted in each group" if look.open_windows else ""
    return f"{captured.get()}{look.name}: {size}; {len(look.rows)} shown{open_windows}"
