"""Print rows in aligned columns as plain lines, which look the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print the rows below the column names, or the text `empty` if there are no rows."""
    if not rows:
        click.echo(empty)
        return
    lines = [columns, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
