"""What is said of a row: each rule's meaning, what follows from it, and that a refused row moves no watermark."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Read, Rule, Step, Watermark
from headrace.errors import ConfigurationError
from headrace.expectations import row_checks, verdict

ROW = "id STRING, n INT, x DOUBLE, day DATE, who STRUCT<name: STRING>"


def is_even():
    return F.col("n") % 2 == 0


def no_column():
    return True


def broken():
    raise RuntimeError("no such thing")


@pytest.fixture(scope="module")
def rows(spark):
    """Rows that differ in one column each: (id, n, x, day, name)."""
    table = [
        ("ab", 1, 0.5, "2026-01-01", "eve"),
        ("a\nb", 5, float("nan"), "2026-12-31", None),
        ("ab\n", 6, None, None, "eve"),
        ("xab", 0, 9.9, "2025-12-31", "eve"),
        (None, None, None, None, None),
    ]
    flat = spark.createDataFrame(table, "id STRING, n INT, x DOUBLE, day STRING, name STRING")
    return flat.select("id", "n", "x", F.to_date("day").alias("day"), F.struct("name").alias("who"))


RULES = {
    "not_null": ({"not_null": ["id"]}, [None]),
    "not_null in a field": ({"not_null": ["who.name"]}, ["a\nb", None]),
    "between takes both ends": ({"between": {"n": [1, 5]}}, ["ab\n", "xab"]),
    "between dates": ({"between": {"day": ["2026-01-01", "2026-12-31"]}}, ["xab"]),
    "between refuses what is no number": ({"between": {"x": [0, 9]}}, ["a\nb", "xab"]),
    "one_of": ({"one_of": {"n": [1, 5, 0]}}, ["ab\n"]),
    "one_of or nothing": ({"one_of": {"n": [1, None]}}, ["a\nb", "ab\n", "xab"]),
    "matches the whole value": ({"matches": {"id": "ab"}}, ["a\nb", "ab\n", "xab"]),
    "matches one of several, whole": ({"matches": {"id": "a|ab|xa."}}, ["a\nb", "ab\n"]),
    "matches over lines only when asked": ({"matches": {"id": "(?s)a.b"}}, ["ab", "ab\n", "xab"]),
    "rule": ({"rule": f"{__name__}:is_even"}, ["ab", "a\nb"]),
}


@pytest.fixture(scope="module")
def failed(rows):
    """The ids of the rows that each rule refuses, of all rules in one judgement."""
    tests = [row_checks.row_checks([Rule(**rule)])[0] for rule, _ in RULES.values()]
    answers = rows.select("id", *(test.failed.alias(str(at)) for at, test in enumerate(tests))).collect()
    return {name: [row["id"] for row in answers if row[str(at)]] for at, name in enumerate(RULES)}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_refuses_what_it_says(failed, name):
    assert failed[name] == RULES[name][1]


def test_on_fail_says_what_becomes_of_a_row(rows):
    rules = [
        Rule(not_null=["id"]),
        Rule(between={"n": [0, 5]}, on_fail="drop"),
        Rule(between={"x": [0, 1]}, on_fail="warn"),
        Rule(one_of={"id": ["ab", "xab"]}),
    ]
    said = {row["id"]: row[verdict.VERDICT] for row in verdict.check_result_rows(rows, rules).collect()}
    assert said.pop("ab") is None
    kinds = {id_: (v.bad, v.quarantined, v.dropped, v.warned) for id_, v in said.items()}
    assert kinds == {
        "a\nb": (True, ["one_of id"], [], ["between x 0 and 1"]),
        "ab\n": (True, ["one_of id"], ["between n 0 and 5"], []),
        "xab": (False, [], [], ["between x 0 and 1"]),
        None: (True, ["not_null id"], [], []),
    }
    assert said["xab"].raw == '{"id":"xab","n":0,"x":9.9,"day":"2025-12-31","who":{"name":"eve"}}'


def test_stop_ends_the_query_and_names_the_rule(rows):
    from headrace.runtime.failures import root_cause

    judged = verdict.check_result_rows(rows.where("n = 6"), [Rule(not_null=["x"], on_fail="stop")])
    with pytest.raises(Exception, match="not_null x failed") as error:
        judged.collect()
    row = r'{"id":"ab\n","n":6,"who":{"name":"eve"}}'
    assert f"not_null x failed, and its on_fail is stop: {row}" in root_cause(str(error.value))


def test_stop_does_not_stop_at_a_malformed_row(spark):
    frame = arrivals(spark, ("x", 0, True))
    (row,) = verdict.check_source_rows(frame, Read(source="s", expect=[Rule(not_null=["n"], on_fail="stop")])).collect()
    assert row[verdict.VERDICT].quarantined == ["malformed"]


def arrivals(spark, *rows):
    """Rows as a source gives them: id, event time in seconds from now, whether malformed."""
    frame = spark.createDataFrame(
        [(id_, seconds, f"raw {id_}", f"file {id_}", malformed) for id_, seconds, malformed in rows],
        f"id STRING, s INT, {verdict.RAW} STRING, {verdict.POSITION} STRING, {verdict.MALFORMED} BOOLEAN",
    )
    time = F.current_timestamp() + F.make_dt_interval(secs=F.col("s"))
    return frame.select("id", F.lit(None).cast("int").alias("n"), time.alias("at"), *frame.columns[2:])


def test_arrivals_have_event_times_that_can_be(spark):
    frame = arrivals(
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
    said = {row["id"]: row[verdict.VERDICT] for row in rows}
    assert {id_: verdict.quarantined for id_, verdict in said.items() if verdict} == {
        "too late": ["event time in the future"],
        "missing": ["event time missing"],
        "malformed": ["malformed"],
    }
    assert {row["id"] for row in rows if row["at"] is not None} == {"now", "soon"}
    assert (said["too late"].raw, said["too late"].position) == ("raw too late", "file too late")


def test_rows_without_a_record_of_their_own_are_told_as_json(spark):
    frame = arrivals(spark, ("a", 0, False)).drop(*verdict.SOURCE_COLUMNS, "at")
    (row,) = verdict.check_source_rows(frame, Read(source="s", expect=[Rule(not_null=["n"])])).collect()
    assert (row[verdict.VERDICT].raw, row[verdict.VERDICT].position) == ('{"id":"a"}', None)


def test_without_rules_a_result_is_left_alone(rows):
    assert verdict.check_result_rows(rows, []) is rows


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("no_column", Rule(rule=f"{__name__}:no_column")),
        ("broken", Rule(rule=f"{__name__}:broken")),
        ("columns", Rule(not_null=["idd", "who.name", "N", "nn"])),
    ],
)
def test_a_rule_that_cannot_be_asked_is_named(rows, golden, name, rule):
    with pytest.raises(ConfigurationError) as error:
        verdict.check_result_rows(rows, [rule])
    golden(f"quality/{name}", str(error.value).replace(__name__, "module"))


def test_every_count_has_its_name():
    step = Step(
        name="s",
        layer="bronze",
        reads={"a": Read(source="a", expect=[Rule(not_null=["x", "y"]), Rule(rule="shop:ok")])},
        expect=[Rule(matches={"z": "a"})],
        writes=[],
    )
    own = ["not_null x", "not_null y", "rule ok", "matches z"]
    assert verdict.rule_names(step) == ["malformed", "event time missing", "event time in the future", *own]


def test_a_row_of_the_future_never_moves_the_watermark(flow):
    """Rows 8 minutes late, in batches of their own, after rows that would have moved the watermark to 2099."""
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
    refused = [tuple(row["reasons"]) for row in run.quarantine("landed")]
    assert sorted(refused) == [("event time in the future",)] * 3 + [("event time missing",)] * 3
    events = [event for event in run.events if event.what == "batch"]
    marks = [event.watermark for event in events]
    assert all(earlier <= later for earlier, later in pairwise(mark for mark in marks if mark))
    assert marks[-1] == "2026-01-01T11:50:00.000Z"
    assert [event.rows for event in events if event.rows] == [3] * 3
    assert run.total("land", "late") == run.total("land", "duplicates") == 0
