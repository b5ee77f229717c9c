"""`headrace show`: show rows of a table or of its quarantine, and the size of the table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.observe.table_info import TableInfo


@click.command(
    epilog=examples("headrace show gold_revenue --limit 10", "headrace show bronze_orders --quarantine -o json")
)
@click.argument("table")
@shared_options.environment()
@click.option("--quarantine", is_flag=True, help="Show the quarantined rows of the step that writes the table.")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many rows to show at most."
)
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def show(
    table: str,
    environment: str,
    quarantine: bool,
    limit: int,
    values: dict[str, str],
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Show the rows of a table.

    Prints rows, the size and the version of the table. With --quarantine, does so for the quarantine table of the step
    that writes the table; its rows include the reasons.

    Quarantine tables, and tables with windows, show their newest rows. Other tables show rows in no particular order.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.observe import table_info
    from headrace.spark import session

    bundle = load_bundle(find_root(bundle_dir), environment, values)
    name = table_info.resolve_table_name(bundle, table, quarantine=quarantine)
    with session.bundle_session(bundle, name=f"show {name}") as spark:
        info = table_info.read_table_info(spark, bundle, name, limit=limit)
    if as_json:
        click.echo(json.dumps(info.as_dict(), default=str))
    else:
        click.echo(format_table_info(info, as_records=quarantine))


def format_table_info(info: TableInfo, *, as_records: bool = False) -> str:
    """Return the rows, as a grid or as one block of lines for each row, and a line with the size of the table."""
    return (_format_records(info) if as_records else _format_grid(info)) + _format_size(info)


def _format_records(info: TableInfo) -> str:
    """Return each row as a block of lines, one for each column: a raw record is too wide for a table."""
    width = max(map(len, info.columns), default=0)
    blocks = (
        "".join(f"{column:<{width}}  {_text(value)}\n" for column, value in zip(info.columns, row, strict=True))
        for row in info.rows
    )
    return "".join(f"{block}\n" for block in blocks)


def _format_grid(info: TableInfo) -> str:
    """Return the rows as a table with borders."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for column in info.columns:
        table.add_column(column, overflow="fold")
    for row in info.rows:
        table.add_row(*map(_text, row))
    width = None if sys.stdout.isatty() else 200  # None: as wide as the terminal
    console = Console(width=width, markup=False, emoji=False)  # rich must not interpret values like [/b] or :cat:
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _format_size(info: TableInfo) -> str:
    """Return the size of the Delta table, and how many rows are shown."""
    size = f"{info.count} rows, {info.files} files, {info.size / 1e6:.1f} MB, version {info.version}"
    open_windows = (
        f"\n{info.open_windows} open windows, counted separately for each combination of the grouping columns"
        if info.open_windows
        else ""
    )
    return f"{info.name}: {size}; {len(info.rows)} shown{open_windows}"


def _text(value: object) -> str:
    """Return a value as text; an empty text for null. The elements of a list are separated by semicolons."""
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return "" if value is None else str(value)
