"""Looking at tables: rows, sizes, versions, windows that are still open."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headrace.errors import ConfigurationError, DataError
from headrace.observe import table_info


def test_a_gold_table_shows_its_newest_windows(ran):
    flow, run = ran
    seen = table_info.table_info(flow.spark, run.bundle, "counted", limit=2)
    delta = DeltaTable(str(flow.directory / "tables" / "counted"))
    assert (seen.count, seen.open_windows, seen.version) == (3, 2, delta.version())
    assert seen.files == len(delta.file_uris())
    assert seen.size == sum(Path(file.removeprefix("file://")).stat().st_size for file in delta.file_uris())
    facts = seen.facts()
    assert [(row["window_start"].minute, row["rows"]) for row in facts["rows"]] == [(8, 1), (1, 1)]
    assert {key: facts[key] for key in ("table", "count", "version")} == {
        "table": "counted",
        "count": 3,
        "version": delta.version(),
    }


def test_times_are_told_as_the_table_means_them_wherever_it_is_looked_at(ran, monkeypatch):
    flow, run = ran
    here = table_info.table_info(flow.spark, run.bundle, "counted", limit=2).rows
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert table_info.table_info(flow.spark, run.bundle, "counted", limit=2).rows == here
    finally:
        monkeypatch.undo()
        time.tzset()


def test_other_tables_have_no_open_windows(ran):
    flow, run = ran
    seen = table_info.table_info(flow.spark, run.bundle, "landed", limit=20)
    assert (seen.count, len(seen.rows), seen.columns, seen.open_windows) == (6, 6, ("id", "at"), 0)


def test_a_quarantine_shows_what_was_refused(ran):
    flow, run = ran
    name = table_info.resolve_table_name(run.bundle, "landed", quarantine=True)
    assert (
        name == table_info.resolve_table_name(run.bundle, "landed_quarantine", quarantine=False) == "landed_quarantine"
    )
    (row,) = table_info.table_info(flow.spark, run.bundle, name, limit=20).facts()["rows"]
    assert (row["raw"], row["reasons"], row["step"], row["batch"]) == ("no json", ["malformed"], "land", 0)
    assert (datetime.now(UTC).replace(tzinfo=None) - row["quarantined_at"]).total_seconds() < 3600


def test_a_quarantine_that_nothing_came_to_is_empty(ran):
    flow, run = ran
    seen = table_info.table_info(flow.spark, run.bundle, "counted_quarantine", limit=20)
    assert (seen.count, seen.rows, seen.facts()["rows"]) == (0, (), [])


def test_a_step_with_several_tables_has_one_quarantine(flow):
    flow.source("rows")
    flow.steps("two: {layer: bronze, reads: {r: {source: rows, schema: n INT}}, writes: [{table: a}, {table: b}]}")
    bundle = flow.bundle()
    assert [table_info.resolve_table_name(bundle, name, quarantine=True) for name in ("a", "b", "b_quarantine")] == [
        "a_quarantine"
    ] * 3


def test_what_is_no_table_and_what_is_not_there_yet(ran, tmp_path, golden):
    flow, run = ran
    with pytest.raises(ConfigurationError) as unknown:
        table_info.resolve_table_name(run.bundle, "landd", quarantine=False)
    environment = run.bundle.environment.model_copy(
        update={"tables": run.bundle.environment.tables.model_copy(update={"root": str(tmp_path)})}
    )
    elsewhere = run.bundle.model_copy(update={"environment": environment})
    with pytest.raises(DataError) as missing:
        table_info.table_info(flow.spark, elsewhere, "counted_quarantine", limit=1)
    golden("look/errors", f"{unknown.value}\n{missing.value}".replace(str(tmp_path), "TABLES"))
