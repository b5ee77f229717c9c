"""Rows under their columns, as plain lines: the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Prints the rows; without any, what that means."""
    if not rows:
        click.echo(empty)
        return
    lines = [columns, *rows]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
