"""Every kind of change of a query or a sink gets its verdict, and an unchanged query none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from headrace.signatures.compare import compare
from headrace.signatures.state_check import StateCheck
from query_changes import NEW_GENERATION, NEW_ROWS, QUERIES, SAFE, UNKNOWN, WRONG, plus, total, total_of
from signature_queries import GOLD, aggregate, deduplicate, empty_inputs, join, sessions, signature_of, windows


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return empty_inputs(spark, tmp_path_factory.mktemp("inputs"))


def worst(changes):
    return max(changes, key=lambda change: change.verdict, default=None)


@pytest.mark.parametrize(
    ("old", "new", "verdict", "path"), [row[1:] for row in QUERIES], ids=[row[0] for row in QUERIES]
)
def test_change_of_a_query(inputs, old, new, verdict, path):
    changes = compare(signature_of(old(inputs)), signature_of(new(inputs)))
    if verdict is None:
        assert changes == ()
        return
    assert worst(changes).verdict is verdict
    assert path in {change.path for change in changes if change.verdict is verdict}
    assert all("→" in change.sentence and "\n" not in change.sentence for change in changes)


# Settings of the query: name, changes of the signature's arguments, the worst verdict, and the path of that change.
SETTINGS = [
    ("same", {}, None, ""),
    (
        "input reads another table",
        {"reads": {"orders": {"kind": "table", "name": "table others"}}},
        NEW_GENERATION,
        "sources[0].name",
    ),
    ("kind of source", {"reads": {"orders": {"kind": "files", "name": "source orders"}}}, NEW_GENERATION, "sources"),
    ("output mode", {"mode": "complete"}, NEW_ROWS, "output_mode"),
    ("sink keys", {"sinks": [{**GOLD, "keys": ["id", "region"]}]}, WRONG, "sinks[0].keys"),
    ("sink sequence", {"sinks": [{**GOLD, "sequence": "seen_at"}]}, WRONG, "sinks[0].sequence"),
    ("sink replace", {"sinks": [{**GOLD, "mode": "replace"}]}, WRONG, "sinks[0].mode"),
    ("table renamed", {"sinks": [{**GOLD, "name": "platinum"}]}, WRONG, "sinks[0].name"),
    ("kind of sink", {"sinks": [{**GOLD, "kind": "topic"}]}, NEW_ROWS, "sinks[0].kind"),
    (
        "partition column added",
        {"sinks": [{**GOLD, "partition_by": ["region"]}]},
        NEW_GENERATION,
        "sinks[0].partition_by",
    ),
    ("columns of the sink", {"sinks": [{**GOLD, "columns": ["id"]}]}, NEW_ROWS, "sinks[0].columns"),
    ("sink added", {"sinks": [GOLD, {"kind": "topic", "name": "events"}]}, NEW_ROWS, "sinks"),
    ("nothing set instead of empty", {"sinks": [{**GOLD, "partition_by": None}]}, None, ""),
]


@pytest.mark.parametrize(
    ("settings", "verdict", "path"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS]
)
def test_change_of_sources_sinks_and_output_mode(inputs, settings, verdict, path):
    frame = aggregate("sum(amount)")(inputs)
    changes = compare(signature_of(frame, mode="update"), signature_of(frame, **{"mode": "update", **settings}))
    assert [(change.path, change.verdict) for change in changes] == ([(path, verdict)] if verdict else [])


def test_append_to_upsert_and_fewer_partition_columns(inputs):
    old = signature_of(inputs.orders, sinks=[{**GOLD, "mode": "append", "keys": [], "partition_by": ["region"]}])
    changes = compare(old, signature_of(inputs.orders))
    assert [(change.path, change.verdict) for change in changes] == [
        ("sinks[0].mode", WRONG),
        ("sinks[0].partition_by", NEW_ROWS),
    ]


def test_all_changes_are_reported(inputs):
    old = signature_of(windows("15 minutes")(inputs))
    changed = windows("5 minutes")(replace(inputs, orders=inputs.orders.where("n > 1"))).withColumn("x", F.lit(1))
    changes = compare(old, signature_of(changed, mode="update", sinks=[{**GOLD, "sequence": "n"}]))
    assert [(change.path, change.verdict) for change in changes] == [
        ("stateful[0].keys", WRONG),
        ("filters", NEW_ROWS),
        ("output_mode", NEW_ROWS),
        ("sinks[0].sequence", WRONG),
        ("output", NEW_ROWS),
    ]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            windows("15 minutes"),
            windows("5 minutes"),
            "window 15 minutes → 5 minutes: rows of both window sizes would be mixed in the state and in the table",
        ),
        (
            windows("15 minutes"),
            windows("15 minutes", "5 minutes"),
            "window 15 minutes → 15 minutes, slide 5 minutes: "
            "rows of both windows would be mixed in the state and in the table",
        ),
        (
            sessions("5 minutes"),
            sessions("10 minutes"),
            "session gap 5 minutes → 10 minutes: rows of both gaps would be mixed in the state and in the table",
        ),
        (
            deduplicate("id"),
            deduplicate("id", "n"),
            "keys of dropDuplicates id → id, n: Spark refuses the old state",
        ),
        (
            deduplicate("id"),
            lambda inputs: inputs.timed,
            "stateful operators dropDuplicates(id) → none: Spark refuses the old state",
        ),
        (
            lambda inputs: inputs.orders,
            lambda inputs: inputs.orders.where("n > 1"),
            "filter none → (orders.n > 1): applies to new rows; rows that are written stay as they are",
        ),
    ],
)
def test_sentence_says_what_changed_and_the_effect(inputs, old, new, sentence):
    assert [change.sentence for change in compare(signature_of(old(inputs)), signature_of(new(inputs)))] == [sentence]


def test_window_over_another_time_is_a_change_of_the_keys(inputs):
    old, new = (signature_of(windows("15 minutes", time=time)(inputs)) for time in ("at", "seen_at"))
    keys, watermark = compare(old, new)
    assert keys.old == "window(orders.at, 15 minutes), orders.region"
    assert keys.new == "window(orders.seen_at, 15 minutes), orders.region"
    assert (watermark.old, watermark.new) == ("orders.at", "orders.seen_at")


# ── Spark's own check ─────────────────────────────────────────────────────────────────────────────────

ACCEPTED, REFUSED = StateCheck.accepted(), StateCheck.refused("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE: other keys")


@pytest.mark.parametrize(
    ("new", "check", "verdict"),
    [
        (deduplicate("customer"), REFUSED, NEW_GENERATION),
        (deduplicate("customer"), ACCEPTED, WRONG),
        (deduplicate("id", "n"), ACCEPTED, WRONG),
        (deduplicate("id", "n"), StateCheck.not_checked("remote"), NEW_GENERATION),
    ],
)
def test_state_check_decides_whether_spark_refuses_a_change_of_state(inputs, new, check, verdict):
    (change,) = compare(signature_of(deduplicate("id")(inputs)), signature_of(new(inputs)), state_check=check)
    assert change.verdict is verdict
    assert ("refuses" in change.sentence) is (verdict is NEW_GENERATION)


def test_refusal_that_no_change_explains_is_a_change(inputs):
    same = signature_of(deduplicate("id")(inputs))
    (change,) = compare(same, same, state_check=REFUSED)
    assert (change.path, change.verdict) == ("checkpoint", NEW_GENERATION)
    assert "other keys" in change.sentence
    filtered = signature_of(deduplicate("id")(replace(inputs, orders=inputs.orders.where("n > 1"))))
    assert [change.path for change in compare(same, filtered, state_check=REFUSED)] == ["filters", "checkpoint"]
    changed = signature_of(deduplicate("customer")(inputs))
    assert [change.path for change in compare(same, changed, state_check=REFUSED)] == ["stateful[0].keys"]


# ── Other versions ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("versions", [{"spark": "4.1.0"}, {"python": "3.10"}])
def test_texts_of_other_versions_are_not_compared(inputs, versions):
    old = signature_of(total_of(plus, 1)(inputs))
    new = signature_of(total_of(plus, 2)(inputs))
    old = replace(old, **versions)
    for check, verdict in ((None, UNKNOWN), (StateCheck.not_checked("remote"), UNKNOWN), (ACCEPTED, SAFE)):
        (change,) = compare(old, new, state_check=check)
        assert (change.path, change.verdict) == ("versions", verdict)
    assert [change.path for change in compare(old, new, state_check=REFUSED)] == ["versions", "checkpoint"]


def test_structure_is_compared_with_other_versions(inputs):
    def changes(old, new, **arguments):
        before, after = replace(signature_of(old(inputs)), spark="4.1.0"), signature_of(new(inputs), **arguments)
        return [(change.path, change.verdict) for change in compare(before, after)]

    unknown, same = ("versions", UNKNOWN), ("versions", SAFE)
    assert changes(deduplicate("id"), deduplicate("id")) == [same]
    assert changes(deduplicate("id"), deduplicate("customer")) == [("stateful[0].keys", WRONG), unknown]
    assert changes(windows("1 hour"), windows("1 day")) == [("stateful[0].keys", WRONG), unknown]
    assert changes(windows("1 hour"), windows("1 hour")) == [same]
    assert changes(join(), join(condition="id = return_id AND returned_at > at")) == [unknown]
    assert changes(deduplicate("id"), total) == [("stateful[0].kind", NEW_GENERATION), unknown]
    assert changes(deduplicate("id"), lambda i: i.timed) == [("stateful", NEW_GENERATION), unknown]
    assert changes(lambda i: i.orders, lambda i: i.orders.where("n > 1"), mode="update") == [
        ("output_mode", NEW_ROWS),
        same,
    ]
    assert changes(lambda i: i.orders, lambda i: i.orders, sinks=[{**GOLD, "name": "x"}]) == [
        ("sinks[0].name", WRONG),
        same,
    ]


def test_session_settings_that_change_values(inputs):
    old = signature_of(inputs.orders)
    changes = compare(old, replace(old, time_zone="Asia/Tokyo", ansi=not old.ansi))
    assert [(change.path, change.verdict) for change in changes] == [("time_zone", NEW_ROWS), ("ansi", NEW_ROWS)]
