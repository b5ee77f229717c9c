"""Test the inspection of tables: rows, sizes, versions, open windows."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headrace.errors import ConfigurationError, DataError
from headrace.observe import table_info


def test_gold_table_shows_its_newest_windows(ran):
    flow, run = ran
    info = table_info.read_table_info(flow.spark, run.bundle, "counted", limit=2)
    delta = DeltaTable(str(flow.directory / "tables" / "counted"))
    assert (info.count, info.open_windows, info.version) == (3, 2, delta.version())
    assert info.files == len(delta.file_uris())
    assert info.size == sum(Path(file.removeprefix("file://")).stat().st_size for file in delta.file_uris())
    facts = info.as_dict()
    assert [(row["window_start"].minute, row["rows"]) for row in facts["rows"]] == [(8, 1), (1, 1)]
    assert {key: facts[key] for key in ("table", "count", "version")} == {
        "table": "counted",
        "count": 3,
        "version": delta.version(),
    }


def test_times_are_in_utc_in_every_time_zone(ran, monkeypatch):
    flow, run = ran
    rows = table_info.read_table_info(flow.spark, run.bundle, "counted", limit=2).rows
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert table_info.read_table_info(flow.spark, run.bundle, "counted", limit=2).rows == rows
    finally:
        monkeypatch.undo()
        time.tzset()


def test_other_tables_have_no_open_windows(ran):
    flow, run = ran
    info = table_info.read_table_info(flow.spark, run.bundle, "landed", limit=20)
    assert (info.count, len(info.rows), info.columns, info.open_windows) == (6, 6, ("id", "at"), 0)


def test_quarantine_shows_quarantined_rows(ran):
    flow, run = ran
    name = table_info.resolve_table_name(run.bundle, "landed", quarantine=True)
    assert (
        name == table_info.resolve_table_name(run.bundle, "landed_quarantine", quarantine=False) == "landed_quarantine"
    )
    (row,) = table_info.read_table_info(flow.spark, run.bundle, name, limit=20).as_dict()["rows"]
    assert (row["raw"], row["reasons"], row["step"], row["batch"]) == ("no json", ["malformed"], "land", 0)
    assert (datetime.now(UTC).replace(tzinfo=None) - row["quarantined_at"]).total_seconds() < 3600


def test_quarantine_without_rows_is_empty(ran):
    flow, run = ran
    info = table_info.read_table_info(flow.spark, run.bundle, "counted_quarantine", limit=20)
    assert (info.count, info.rows, info.as_dict()["rows"]) == (0, (), [])


def test_rows_of_the_same_time_are_in_the_order_of_their_text(flow):
    flow.source("rows")
    flow.steps("land: {layer: bronze, reads: {r: {source: rows, schema: n INT}}, writes: {table: landed}}")
    for bad in ("b", "d", "a", "e", "c"):
        flow.feed("rows", f"not json {bad}")
    run = flow.run()
    rows = table_info.read_table_info(flow.spark, run.bundle, "landed_quarantine", limit=4).as_dict()["rows"]
    assert [row["raw"] for row in rows] == [f"not json {bad}" for bad in "abcd"]


def test_step_with_several_tables_has_one_quarantine(flow):
    flow.source("rows")
    flow.steps("two: {layer: bronze, reads: {r: {source: rows, schema: n INT}}, writes: [{table: a}, {table: b}]}")
    bundle = flow.bundle()
    assert [table_info.resolve_table_name(bundle, name, quarantine=True) for name in ("a", "b", "b_quarantine")] == [
        "a_quarantine"
    ] * 3


def test_unknown_table_and_table_that_does_not_exist_yet(ran, tmp_path, golden):
    flow, run = ran
    with pytest.raises(ConfigurationError) as unknown:
        table_info.resolve_table_name(run.bundle, "landd", quarantine=False)
    environment = run.bundle.environment.model_copy(
        update={"tables": run.bundle.environment.tables.model_copy(update={"root": str(tmp_path)})}
    )
    empty_bundle = run.bundle.model_copy(update={"environment": environment})
    with pytest.raises(DataError) as missing:
        table_info.read_table_info(flow.spark, empty_bundle, "counted_quarantine", limit=1)
    golden("table_info/errors", f"{unknown.value}\n{missing.value}".replace(str(tmp_path), "TABLES"))
