"""The expectation `unique`: of equal rows in a batch one stays, the same one whenever the batch is repeated."""

from __future__ import annotations

import pytest

from headrace.config.models import Rule
from headrace.expectations import verdict

ROWS = [("a", 3), ("a", 2), ("a", -1), ("b", 1), (None, 1), (None, 1)]
UNIQUE, BETWEEN = Rule(unique=["k"]), Rule(between={"n": [0, 10]})


def outcomes(spark, rows, *rules):
    checked = verdict.check_result_rows(spark.createDataFrame(rows, "k STRING, n INT"), rules).collect()
    return sorted(((row.k, row.n, tuple(row._headrace.quarantined)) for row in checked if row._headrace), key=str)


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]], ids=["as is", "reversed"])
def test_all_copies_but_one_fail_whatever_the_order(spark, rows):
    assert outcomes(spark, rows, UNIQUE) == [("a", 2, ("unique k",)), ("a", 3, ("unique k",))]


def test_row_that_fails_another_rule_is_not_the_one_that_stays(spark):
    assert outcomes(spark, ROWS, UNIQUE, BETWEEN) == [
        ("a", -1, ("between n 0 and 10", "unique k")),
        ("a", 3, ("unique k",)),
    ]


def test_copies_are_quarantined_and_counted(flow):
    flow.source("rows")
    flow.feed("rows", {"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 1})
    flow.steps(
        'land: {layer: bronze, reads: {rows: {source: rows, schema: "k STRING, n INT"}}, '
        "expect: [{unique: [k]}], writes: {table: landed}}"
    )
    run = flow.run()
    assert sorted((row["k"], row["n"]) for row in flow.read("landed")) == [("a", 1), ("b", 1)]
    assert [row["reasons"] for row in flow.read("landed_quarantine")] == [["unique k"]]
    assert [event.quarantined for event in run.events if event.what == "batch"] == [{"unique k": 1}]
