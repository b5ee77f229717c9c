"""Verdicts: what happens to rows that fail a check, and that bad rows never advance a watermark."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Read, Rule, Step, Watermark
from headrace.expectations import verdict
from headrace.runtime.failures import root_cause


def source_rows(spark, *rows):
    """Return rows as a source reads them: id, event time in seconds from now, whether malformed."""
    frame = spark.createDataFrame(
        [(id_, seconds, f"raw {id_}", f"file {id_}", malformed) for id_, seconds, malformed in rows],
        f"id STRING, s INT, {verdict.RAW} STRING, {verdict.POSITION} STRING, {verdict.MALFORMED} BOOLEAN",
    )
    time = F.current_timestamp() + F.make_dt_interval(secs=F.col("s"))
    return frame.select("id", F.lit(None).cast("int").alias("n"), time.alias("at"), *frame.columns[2:])


def test_on_fail_decides_what_happens_to_a_row(rows):
    rules = [
        Rule(not_null=["id"]),
        Rule(between={"n": [0, 5]}, on_fail="drop"),
        Rule(between={"x": [0, 1]}, on_fail="warn"),
        Rule(one_of={"id": ["ab", "xab"]}),
    ]
    verdicts = {row["id"]: row[verdict.VERDICT] for row in verdict.check_result_rows(rows, rules).collect()}
    assert verdicts.pop("ab") is None
    outcomes = {id_: (each.bad, each.quarantined, each.dropped, each.warned) for id_, each in verdicts.items()}
    assert outcomes == {
        "a\nb": (True, ["one_of id"], [], ["between x 0 and 1"]),
        "ab\n": (True, ["one_of id"], ["between n 0 and 5"], []),
        "xab": (False, [], [], ["between x 0 and 1"]),
        None: (True, ["not_null id"], [], []),
    }
    assert verdicts["xab"].raw == '{"id":"xab","n":0,"x":9.9,"day":"2025-12-31","who":{"name":"eve"}}'


def test_on_fail_stop_fails_the_query_with_the_rule_and_the_row(rows):
    checked = verdict.check_result_rows(rows.where("n = 6"), [Rule(not_null=["x"], on_fail="stop")])
    with pytest.raises(Exception, match="not_null x failed") as error:
        checked.collect()
    row = r'{"id":"ab\n","n":6,"who":{"name":"eve"}}'
    assert f"not_null x failed, and its on_fail is stop: {row}" in root_cause(str(error.value))


def test_malformed_row_does_not_fail_a_rule_that_stops(spark):
    frame = source_rows(spark, ("x", 0, True))
    (row,) = verdict.check_source_rows(frame, Read(source="s", expect=[Rule(not_null=["n"], on_fail="stop")])).collect()
    assert row[verdict.VERDICT].quarantined == ["malformed"]


def test_missing_and_future_event_times_are_quarantined(spark):
    frame = source_rows(
        spark,
        ("now", 0, False),
        ("soon", 3600, False),
        ("too late", 3601, False),
        ("missing", None, False),
        ("malformed", 99999, True),
    )
    read = Read(
        source="s",
        watermark=Watermark(column="at", delay="1 minute"),
        max_future="1 hour",
        expect=[Rule(not_null=["id"])],
    )
    rows = verdict.check_source_rows(frame, read).collect()
    assert rows[0].asDict().keys() == {"id", "n", "at", verdict.VERDICT}
    verdicts = {row["id"]: row[verdict.VERDICT] for row in rows}
    assert {id_: each.quarantined for id_, each in verdicts.items() if each} == {
        "too late": ["event time in the future"],
        "missing": ["event time missing"],
        "malformed": ["malformed"],
    }
    assert {row["id"] for row in rows if row["at"] is not None} == {"now", "soon"}
    assert (verdicts["too late"].raw, verdicts["too late"].position) == ("raw too late", "file too late")


def test_rows_without_a_raw_record_are_kept_as_json(spark):
    frame = source_rows(spark, ("a", 0, False)).drop(*verdict.SOURCE_COLUMNS, "at")
    (row,) = verdict.check_source_rows(frame, Read(source="s", expect=[Rule(not_null=["n"])])).collect()
    assert (row[verdict.VERDICT].raw, row[verdict.VERDICT].position) == ('{"id":"a"}', None)


def test_without_rules_a_result_is_unchanged(rows):
    assert verdict.check_result_rows(rows, []) is rows


def test_rule_names_include_all_checks_of_a_step():
    step = Step(
        name="s",
        layer="bronze",
        reads={"a": Read(source="a", expect=[Rule(not_null=["x", "y"]), Rule(rule="shop:ok")])},
        expect=[Rule(matches={"z": "a"})],
        writes=[],
    )
    own = ["not_null x", "not_null y", "rule ok", "matches z"]
    assert verdict.check_names_of_step(step) == ["malformed", "event time missing", "event time in the future", *own]


def test_row_of_the_future_never_advances_the_watermark(flow):
    """Rows 8 minutes late, in batches of their own, after rows that would advance the watermark to 2099."""
    flow.source("rows", maxFilesPerTrigger=1)
    flow.steps("""
        land:
          layer: bronze
          reads:
            rows: {source: rows, schema: "id STRING, at TIMESTAMP", watermark: {column: at, delay: 10 minutes}}
          transform: headrace.transforms.bronze:deduplicate
          with: {keys: [id]}
          writes: {table: landed}
        """)
    start = datetime(2026, 1, 1, 12)
    for batch in range(3):
        good = {"id": f"good {batch}", "at": str(start - timedelta(minutes=4 * batch))}
        flow.feed("rows", good, {"id": "far", "at": "2099-01-01 00:00:00"}, {"id": "none", "at": None})
    run = flow.run()
    assert {row["id"] for row in run.rows("landed")} == {f"good {batch}" for batch in range(3)}
    reasons = [tuple(row["reasons"]) for row in run.quarantine("landed")]
    assert sorted(reasons) == [("event time in the future",)] * 3 + [("event time missing",)] * 3
    events = [event for event in run.events if event.what == "batch"]
    watermarks = [event.watermark for event in events]
    assert all(earlier <= later for earlier, later in pairwise(mark for mark in watermarks if mark))
    assert watermarks[-1] == "2026-01-01T11:50:00.000Z"
    assert [event.rows for event in events if event.rows] == [3] * 3
    assert run.total("land", "late") == run.total("land", "duplicates") == 0
