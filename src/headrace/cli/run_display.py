"""Show the events of a run, as a table that is redrawn or as plain lines."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Literal

import click

from headrace.config.models import Bundle
from headrace.runtime.events import Event, format_batch, format_lag, format_warning

# The fields of an event that are summed up for each step. Totals are printed with these names.
TOTALS = ("rows", "late", "duplicates", "quarantined", "dropped")
# A table with these columns fits into 80 characters, even with long step names.
COLUMNS = ("step", "batch", "rows", "rows/s", "ms", "lag", "watermark", "state")


class RunDisplay:
    """Prints the events of a run as they arrive, and totals when the run ends.

    With `show_table`, and if stdout is a terminal, a table shows the last batch of each step. Otherwise each batch,
    warning and failure is printed as a line.
    """

    def __init__(self, bundle: Bundle, pipeline: str, *, show_table: bool) -> None:
        self._started = time.monotonic()
        self._title = f"pipeline {pipeline}, environment {bundle.environment.name}"
        self._last_batches: dict[str, Event] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._failures: dict[str, str] = {}
        self._warnings: list[str] = []
        self._live_table: Any = None
        self._show_table = show_table and sys.stdout.isatty()

    def __enter__(self) -> RunDisplay:
        click.echo(f"{self._title}: starting Spark …", err=True)
        return self

    def start_table(self) -> None:
        """Start drawing the table if this run shows one. Call this method after Spark has started."""
        if self._show_table:
            from rich.live import Live

            self._live_table = Live(refresh_per_second=4, transient=False)
            self._live_table.start()

    def show(self, event: Event) -> None:
        """Add the event to the totals, and redraw the table or print a line. Events of the run itself are not shown."""
        if event.what == "batch":
            totals = self._totals.setdefault(event.step, dict.fromkeys(TOTALS, 0))
            for name in TOTALS:
                count = getattr(event, name)  # a number, or a dict with a number for each rule
                totals[name] += sum(count.values()) if isinstance(count, dict) else count
            self._last_batches[event.step] = event
            self._failures.pop(event.step, None)  # the step has recovered
        elif event.what == "warning":
            self._warnings.append(format_warning(event))
        elif event.step:
            self._failures[event.step] = event.message
        if self._live_table is not None:
            self._live_table.update(self._render())
        elif event.what == "batch":
            click.echo(format_batch(event))
        elif event.what == "warning":
            click.echo(f"Warning: {self._warnings[-1]}", err=True)
        elif event.step:
            click.echo(f"{event.step}: {event.message}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live_table is not None:
            self._live_table.stop()
        if kind is None:
            click.echo(self._summary())

    def _render(self) -> Any:
        """Return the table; below it, the totals that have no column, the warnings and the failures."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self._title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for column in COLUMNS:
            justify: Literal["left", "right"] = "left" if column in ("step", "watermark") else "right"
            # If the terminal is too narrow, only step names are wrapped.
            table.add_column(column, justify=justify, no_wrap=column != "step", overflow="fold")
        for step, event in self._last_batches.items():
            table.add_row(
                step,
                str(event.batch),
                str(self._totals[step]["rows"]),
                f"{event.rows_per_second:.0f}",
                str(event.milliseconds),
                format_lag(event.lag),
                (event.watermark or "").partition(".")[0].replace("T", " "),
                str(event.state_rows or ""),
            )
        lines = [f"{step}: {', '.join(texts)}" for step in self._last_batches if (texts := self._other_totals(step))]
        lines += [f"Warning: {warning}" for warning in self._warnings]
        lines += [f"{step}: {message}" for step, message in self._failures.items()]
        return Group(table, *map(Text, lines))  # Text, because rich would interpret [brackets] in a str as markup

    def _other_totals(self, step: str) -> list[str]:
        """Return a text for each nonzero total of a step, except `rows`, which is shown separately."""
        totals = self._totals[step]
        return [f"{totals[name]} {name}" for name in TOTALS if totals[name] and name != "rows"]

    def _summary(self) -> str:
        seconds = time.monotonic() - self._started
        lines = [f"{self._title}: done in {seconds:.1f} s"]
        for step, totals in self._totals.items():
            counts = [f"{totals['rows']} rows in", *self._other_totals(step)]
            lines.append(f"  {step}: {', '.join(counts)}")
        return "\n".join(lines if self._totals else [*lines, "  no new input"])
