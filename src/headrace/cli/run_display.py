"""What a run shows while it works: a table that renews itself in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Literal

import click

from headrace.config.models import Bundle
from headrace.runtime.events import Event, format_batch, format_lag

COUNTED = ("rows", "late", "duplicates", "quarantined", "dropped")
COLUMNS = ("step", "batch", "rows", "rows/s", "ms", "lag", "watermark", "state")  # 80 wide with long step names


class Live:
    """Shows a run's events as they come."""

    def __init__(self, bundle: Bundle, pipeline: str, *, table: bool) -> None:
        self._started = time.monotonic()
        self._where = f"pipeline {pipeline}, environment {bundle.environment.name}"
        self._latest: dict[str, Event] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._failures: dict[str, str] = {}
        self._warnings: list[str] = []
        self._table: Any = None
        self._wanted = table and sys.stdout.isatty()

    def __enter__(self) -> Live:
        click.echo(f"{self._where}: starting Spark …", err=True)
        return self

    def ready(self) -> None:
        """Spark is up."""
        if self._wanted:
            from rich.live import Live as Renewed

            self._table = Renewed(refresh_per_second=4, transient=False)
            self._table.start()

    def show(self, event: Event) -> None:
        """One event more."""
        if event.what == "batch":
            totals = self._totals.setdefault(event.step, dict.fromkeys(COUNTED, 0))
            for what in COUNTED:
                count = getattr(event, what)
                totals[what] += sum(count.values()) if isinstance(count, dict) else count
            self._latest[event.step] = event
            self._failures.pop(event.step, None)
        elif event.what == "warning":
            self._warnings.append(f"{event.step}: {event.message}")
        elif event.step:
            self._failures[event.step] = event.message
        if self._table is not None:
            self._table.update(self._as_table())
        elif event.what == "batch":
            click.echo(format_batch(event))
        elif event.what == "warning":
            click.echo(f"Warning: {self._warnings[-1]}", err=True)
        elif event.step:
            click.echo(f"{event.step}: {event.message}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._table is not None:
            self._table.stop()
        if kind is None:
            click.echo(self._summary())

    def _as_table(self) -> Any:
        """A row for each step; below them what was counted besides rows, and what failed."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        shown = Table(title=self._where, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for column in COLUMNS:  # where room is short, only a step's name goes on in the next line
            justify: Literal["left", "right"] = "left" if column in ("step", "watermark") else "right"
            shown.add_column(column, justify=justify, no_wrap=column != "step", overflow="fold")
        for step, event in self._latest.items():
            shown.add_row(
                step,
                str(event.batch),
                str(self._totals[step]["rows"]),
                f"{event.rows_per_second:.0f}",
                str(event.milliseconds),
                format_lag(event.lag),
                (event.watermark or "").partition(".")[0].replace("T", " "),
                str(event.state_rows or ""),
            )
        remarks = [f"{step}: {', '.join(told)}" for step in self._latest if (told := self._remarks(step))]
        remarks += [f"Warning: {warning}" for warning in self._warnings]
        remarks += [f"{step}: {message}" for step, message in self._failures.items()]
        return Group(shown, *map(Text, remarks))  # Text: what a record holds is no markup

    def _remarks(self, step: str) -> list[str]:
        return [f"{count} {what}" for what, count in self._totals[step].items() if count and what != "rows"]

    def _summary(self) -> str:
        seconds = time.monotonic() - self._started
        lines = [f"{self._where}: done in {seconds:.1f} s"]
        for step, totals in self._totals.items():
            told = [f"{totals['rows']} rows in", *self._remarks(step)]
            lines.append(f"  {step}: {', '.join(told)}")
        return "\n".join(lines if self._totals else [*lines, "  nothing new to read"])
