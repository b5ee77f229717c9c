"""Test the text that `headrace status` prints from the recorded events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from click.testing import CliRunner

from headrace.cli import main
from headrace.config.load import load_bundle
from headrace.runtime.events import Event, events_file

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
STEPS = """\
steps:
  land: {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: landed}}
  later: {layer: silver, reads: {rows: {table: landed}}, writes: {table: later}}
"""
BATCH = Event(
    "batch",
    "2026-01-01T12:00:00.000Z",
    "p",
    "r",
    1,
    "land",
    batch=0,
    rows=10,
    lag={"files": 7},
    watermark="2026-01-01T11:50:00.000Z",
    state_rows=6,
    late=2,
    late_unit="groups",
    duplicates=1,
    quarantined={"malformed": 3},
    dropped={"between n 0 and 9": 4},
    rows_per_second=250.0,
    milliseconds=40,
)


def test_each_step_is_a_line(write_bundle: WriteBundle, golden: Callable[[str, str], None]) -> None:
    root = write_bundle({"conf/pipelines/p.yml": STEPS})
    file = events_file(load_bundle(root).run_files_directory, "p")
    file.parent.mkdir(parents=True)
    failed = Event(
        "step failed", "2026-01-01T12:00:01.000Z", "p", "r", 1, "land", message="step 'land' failed: no disk"
    )
    file.write_text("".join(json.dumps(asdict(event)) + "\n" for event in (BATCH, failed)))
    result = CliRunner().invoke(main, ["status", "p", "-C", str(root)])
    assert (result.exit_code, result.stderr) == (0, "")
    golden("cli/status", result.stdout)
