"""Time windows are recognised in Spark's arithmetic, and described in words."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headrace.signatures.time_windows import describe_window, duration
from signature_queries import empty_inputs, signature_of


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return empty_inputs(spark, tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (lambda: F.window("at", "15 minutes"), "window(orders.at, 15 minutes)"),
        (lambda: F.window("at", "1 day"), "window(orders.at, 1 day)"),
        (lambda: F.window("at", "90 seconds"), "window(orders.at, 90 seconds)"),
        (lambda: F.window("at", "15 minutes", "5 minutes"), "window(orders.at, 15 minutes, slide 5 minutes)"),
        (lambda: F.window("at", "15 minutes", "4 minutes"), "window(orders.at, 15 minutes, slide 4 minutes)"),
        (lambda: F.window("at", "1 hour", "1 hour", "15 minutes"), "window(orders.at, 1 hour, offset 15 minutes)"),
        (lambda: F.window("at", "1 hour", "1 hour", "-15 minutes"), "window(orders.at, 1 hour, offset -15 minutes)"),
        (
            lambda: F.window("at", "1 hour", "30 minutes", "1 minute"),
            "window(orders.at, 1 hour, slide 30 minutes, offset 1 minute)",
        ),
        (
            lambda: F.window(F.col("at").cast("timestamp_ntz"), "1 hour"),
            "window(cast(orders.at as timestamp_ntz), 1 hour)",
        ),
        (lambda: F.session_window("at", "5 minutes"), "session_window(orders.at, gap 5 minutes)"),
        (lambda: F.session_window("at", "1 hour 30 minutes"), "session_window(orders.at, gap 90 minutes)"),
        (
            lambda: F.session_window("at", F.when(F.col("n") == 1, "1 minute").otherwise("2 minutes")),
            "session_window(orders.at, gap CASE WHEN (orders.n = 1) THEN 1 minute ELSE 2 minutes END)",
        ),
    ],
)
def test_window_of_an_aggregation(inputs, window, text):
    signature = signature_of(inputs.timed.groupBy(window(), "region").count())
    assert [key.text for key in signature.stateful[0].keys] == [text, "orders.region"]
    assert signature.filters == ()  # Spark's own filters for the window are no filters of the query
    assert describe_window(text) is not None


def test_filters_of_the_query_stay(inputs):
    rows = inputs.timed.where("n IS NOT NULL AND amount > 1")
    signature = signature_of(rows.groupBy(F.window("at", "1 hour")).count())
    assert signature.filters == ("(orders.amount > cast(1 as double))", "isnotnull(orders.n)")


def test_window_over_windows(inputs):
    hours = inputs.timed.groupBy(F.window("at", "1 hour")).count()
    for time in (F.window_time("window"), "window"):
        days = hours.groupBy(F.window(time, "1 day")).agg(F.sum("count"))
        _, operator = signature_of(days).stateful
        (key,) = operator.keys
        assert key.text == "window(window_time(window(orders.at, 1 hour)), 1 day)"
        assert describe_window(key.text) == ("window_time(window(orders.at, 1 hour))", "1 day")


def test_alias_of_a_window_has_no_effect_on_its_text(inputs):
    aliased = inputs.timed.groupBy(F.window("at", "1 hour").alias("_window")).count()
    selected = signature_of(aliased.select(F.col("_window.start").alias("start")))
    assert [column.text for column in selected.output] == ["window(orders.at, 1 hour).start"]


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (1_000_000, "1 second"),
        (60_000_000, "1 minute"),
        (5_400_000_000, "90 minutes"),
        (7 * 86_400_000_000, "7 days"),
        (1_500_000, "1500 milliseconds"),
        (1, "1 microseconds"),
        (-60_000_000, "-1 minute"),
    ],
)
def test_duration_in_words(microseconds, text):
    assert duration(microseconds) == text
