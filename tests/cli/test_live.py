"""What a run shows: lines in a pipe, a table that renews itself in a terminal, and a sum at the end."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.cli.live import COLUMNS, Live
from headrace.config.load import load_bundle
from headrace.progress import Event

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]


def event(what: str, step: str = "", **more: object) -> Event:
    return Event(what, "now", "p", "r", 1, step, **more)  # type: ignore[arg-type]


EVENTS = [
    event("run started"),
    event("batch", "land", batch=0, rows=10, milliseconds=40, rows_per_second=250.0, refused={"malformed": 2}),
    event(
        "batch",
        "land",
        batch=1,
        rows=5,
        milliseconds=20,
        late=1,
        duplicates=3,
        behind=4,
        watermark="12:00",
        dropped={"a": 2, "b": 3},
        warned={"c": 6},
    ),
    event("batch", "count", batch=0, rows=3, milliseconds=30, state_rows=7),
    event("step failed", "other", message="step 'other' failed: no more disk"),
    event("run ended"),
]
SUM = "  land: 15 rows in, 1 late, 3 duplicates, 2 refused, 5 dropped\n  count: 3 rows in\n"


def shown(root: Path, events: list[Event], *, table: bool) -> None:
    with Live(load_bundle(root), "p", table=table) as live:
        live.ready()
        for one in events:
            live.show(one)


@pytest.mark.parametrize("table", [False, True])  # a pipe is no terminal
def test_in_a_pipe_each_batch_is_a_line(
    table: bool, write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(write_bundle({}), EVENTS, table=table)
    out, err = capsys.readouterr()
    assert err == "pipeline p, environment local: starting Spark …\n"
    assert re.sub(r"in \d+\.\d s", "in 0.0 s", out) == (
        "land: batch 0, 10 rows in 40 ms, 2 refused\n"
        "land: batch 1, 5 rows in 20 ms, 4 behind, 1 late, 3 duplicates, 5 dropped, 6 warned of\n"
        "count: batch 0, 3 rows in 30 ms, 7 in state\n"
        "other: step 'other' failed: no more disk\n"
        f"pipeline p, environment local: done in 0.0 s\n{SUM}"
    )


def test_a_run_without_rows_says_so(write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]) -> None:
    shown(write_bundle({}), [event("run started"), event("run ended")], table=False)
    assert capsys.readouterr().out.endswith(" s\n  nothing new to read\n")


def test_a_run_that_fails_is_not_summed_up(write_bundle: WriteBundle, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_bundle({})
    with pytest.raises(KeyError), Live(load_bundle(root), "p", table=False) as live:
        live.show(EVENTS[1])
        raise KeyError
    assert capsys.readouterr().out == "land: batch 0, 10 rows in 40 ms, 2 refused\n"


def test_in_a_terminal_it_is_a_table_of_each_steps_last_batch_and_its_sums(
    write_bundle: WriteBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen, terminal = os.openpty()
    said: list[bytes] = []

    def read() -> None:
        try:
            while got := os.read(screen, 4096):
                said.append(got)
        except OSError:  # nobody writes to it any more
            return

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as here, os.fdopen(terminal, "w") as stdout:
        here.setattr(sys, "stdout", stdout)
        shown(write_bundle({}), EVENTS, table=True)
    reader.join(10)
    os.close(screen)
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", b"".join(said).decode())
    rows = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in text.splitlines()]
    table = {row[0]: row for row in rows if len(row) == len(COLUMNS)}  # as it is at last
    assert table["step"] == list(COLUMNS)
    assert table["land"] == ["land", "1", "15", "0.0", "20", "4", "12:00", "0", "1", "3", "2", "5"]
    assert table["count"] == ["count", "0", "3", "0.0", "30", "", "", "7", "0", "0", "0", "0"]
    assert "batch 0, " not in text
    assert text.replace("\r", "").endswith(SUM)
