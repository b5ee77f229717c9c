"""Test the output of a run: lines in a pipe, a live table in a terminal, and totals at the end."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.cli.run_display import COLUMNS, RunDisplay
from headrace.config.load import load_bundle
from headrace.runtime.events import Event

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]


def event(what: str, step: str = "", **fields: object) -> Event:
    return Event(what, "now", "p", "r", 1, step, **fields)  # type: ignore[arg-type]


WATERMARK = "2026-01-01T02:58:12.000Z"
EVENTS = [
    event("run started"),
    event("batch", "land", batch=0, rows=10, milliseconds=40, rows_per_second=250.0, quarantined={"malformed": 2}),
    event(
        "batch",
        "land",
        batch=1,
        rows=5,
        milliseconds=20,
        late=1,
        duplicates=3,
        lag={"files": 4},
        watermark=WATERMARK,
        dropped={"a": 2, "b": 3},
        warned={"c": 6},
    ),
    event("batch", "count", batch=0, rows=3, milliseconds=30, state_rows=7),
    event("step failed", "other", message="step 'other' failed: no more disk"),
    event("run ended"),
]
TOTALS = "  land: 15 rows in, 1 late, 3 duplicates, 2 quarantined, 5 dropped\n  count: 3 rows in\n"


def display(root: Path, events: list[Event], *, table: bool) -> None:
    with RunDisplay(load_bundle(root), "p", show_table=table) as run_display:
        run_display.start_table()
        for event in events:
            run_display.show(event)


@pytest.mark.parametrize("table", [False, True])  # no table is drawn in a pipe
def test_each_batch_is_a_line_in_a_pipe(
    table: bool, write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    display(write_bundle({}), EVENTS, table=table)
    out, err = capsys.readouterr()
    assert err == "pipeline p, environment local: starting Spark …\n"
    assert re.sub(r"in \d+\.\d s", "in 0.0 s", out) == (
        "land  batch 0  10 rows  40 ms  2 quarantined\n"
        "land  batch 1  5 rows  20 ms  lag 4 files  1 late  3 duplicates  5 dropped  6 warned\n"
        "count  batch 0  3 rows  30 ms  state 7 rows\n"
        "other: step 'other' failed: no more disk\n"
        f"pipeline p, environment local: done in 0.0 s\n{TOTALS}"
    )


def test_run_without_new_input(write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]) -> None:
    display(write_bundle({}), [event("run started"), event("run ended")], table=False)
    assert capsys.readouterr().out.endswith(" s\n  no new input\n")


def test_failed_run_prints_no_totals(write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_bundle({})
    with pytest.raises(KeyError), RunDisplay(load_bundle(root), "p", show_table=False) as run_display:
        run_display.show(EVENTS[1])
        raise KeyError
    assert capsys.readouterr().out == "land  batch 0  10 rows  40 ms  2 quarantined\n"


def test_markup_in_a_failure_is_printed_unchanged(write_bundle: WriteBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = event("step failed", "other", message="no [bold] and [/no] and [orders]")
    text = in_a_terminal(lambda: display(write_bundle({}), [*EVENTS[:2], failed], table=True), monkeypatch)
    assert "other: no [bold] and [/no] and [orders]" in text


def test_terminal_shows_a_table_of_last_batches_and_totals(
    write_bundle: WriteBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_a_terminal(lambda: display(write_bundle({}), EVENTS, table=True), monkeypatch)
    last = text[text.rindex("pipeline p, environment local\n") :].splitlines()
    assert [line.split() for line in last[1:4]] == [
        list(COLUMNS),
        ["land", "1", "15", "0", "20", "4", "files", "2026-01-01", "02:58:12"],
        ["count", "0", "3", "0", "30", "7"],
    ]
    assert last[4:6] == [
        "land: 1 late, 3 duplicates, 2 quarantined, 5 dropped",
        "other: step 'other' failed: no more disk",
    ]
    assert "batch 0, " not in text
    assert text.endswith(TOTALS)


def test_table_fits_into_80_columns(write_bundle: WriteBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {
        "batch": 12345,
        "rows": 2_000_000,
        "rows_per_second": 98_765.4,
        "milliseconds": 4321,
        "lag": {"files": 765},
    }
    large_batch = event("batch", "bronze_orders", watermark=WATERMARK, state_rows=1_026_000, **numbers)
    text = in_a_terminal(lambda: display(write_bundle({}), [large_batch], table=True), monkeypatch)
    assert "…" not in text.partition("\n")[2]
    cells = text.split()
    for number in ("12345", "2000000", "98765", "4321", "765", "files", "2026-01-01", "02:58:12", "1026000"):
        assert number in cells


def in_a_terminal(function: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the function writes to a terminal of 80 columns, without escape sequences."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    controller, terminal = os.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(controller, 4096):
                chunks.append(chunk)
        except OSError:  # the terminal is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(terminal, "w") as stdout:
        patch.setattr(sys, "stdout", stdout)
        function()
    reader.join(10)
    os.close(controller)
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", b"".join(chunks).decode())
    return re.sub(r" +$", "", text.replace("\r", ""), flags=re.MULTILINE)
