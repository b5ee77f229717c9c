"""`headrace status` for people: a line for each step, from what the runs have recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from click.testing import CliRunner

from headrace.cli import main
from headrace.config.load import load_bundle
from headrace.progress import Recorder, events_file

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
STEPS = """\
steps:
  land: {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: landed}}
  later: {layer: silver, reads: {rows: {table: landed}}, writes: {table: later}}
"""
REPORT = {
    "name": "p.land",
    "runId": "r",
    "batchId": 0,
    "timestamp": "2026-01-01T12:00:00.000Z",
    "numInputRows": 10,
    "sources": [{"metrics": {"maxOffsetsBehindLatest": "7"}}],
    "stateOperators": [{"numRowsTotal": 6, "numRowsDroppedByWatermark": 2}],
    "eventTime": {"watermark": "2026-01-01T11:50:00.000Z"},
}


def test_each_step_is_told_in_a_line(write_bundle: WriteBundle, golden: Callable[[str, str], None]) -> None:
    root = write_bundle({"conf/pipelines/p.yml": STEPS})
    recorder = Recorder(events_file(load_bundle(root).directory, "p"), "p", lambda event: None)
    recorder.expect("p.land", "land")
    recorder.batch(REPORT)
    result = CliRunner().invoke(main, ["status", "p", "-C", str(root)])
    assert (result.exit_code, result.stderr) == (0, "")
    golden("cli/status", result.stdout)
