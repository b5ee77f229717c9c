"""What a run shows while it works: a table that renews itself in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

import click

from headrace.config.models import Bundle
from headrace.progress import Event, in_words

COUNTED = ("rows", "late", "duplicates", "refused", "dropped")
COLUMNS = (
    "step",
    "batch",
    "rows",
    "rows/s",
    "batch ms",
    "behind",
    "watermark",
    "state rows",
    *COUNTED[1:],
)


class Live:
    """Shows a run's events as they come."""

    def __init__(self, bundle: Bundle, pipeline: str, *, table: bool) -> None:
        self._started = time.monotonic()
        self._where = f"pipeline {pipeline}, environment {bundle.environment.name}"
        self._latest: dict[str, Event] = {}
        self._totals: dict[str, dict[str, int]] = {}
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
        if self._table is not None:
            self._table.update(self._as_table())
        elif event.what == "batch":
            click.echo(in_words(event))
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
        from rich.table import Table

        shown = Table(title=self._where)
        for column in COLUMNS:
            shown.add_column(column, justify="left" if column in ("step", "watermark") else "right")
        for step, event in self._latest.items():
            totals = self._totals[step]
            behind = "" if event.behind is None else str(event.behind)
            shown.add_row(
                step,
                str(event.batch),
                str(totals["rows"]),
                str(event.rows_per_second),
                str(event.milliseconds),
                behind,
                event.watermark or "",
                str(event.state_rows),
                *(str(totals[what]) for what in COUNTED[1:]),
            )
        return shown

    def _summary(self) -> str:
        seconds = time.monotonic() - self._started
        lines = [f"{self._where}: done in {seconds:.1f} s"]
        for step, totals in self._totals.items():
            rows = totals.pop("rows")
            told = "".join(f", {count} {what}" for what, count in totals.items() if count)
            lines.append(f"  {step}: {rows} rows in{told}")
        return "\n".join(lines if self._totals else [*lines, "  nothing new to read"])
