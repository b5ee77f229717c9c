"""The stream harness and the pytest plugin, which users call in tests."""

import subprocess
import sys
from datetime import datetime, timedelta

import pytest
from pyspark.errors import PySparkTypeError, StreamingQueryException
from pyspark.sql import functions as F

from headrace.testing import Input

NUMBERS = Input("n int")


def at(minutes):
    return datetime(2026, 1, 1, 12) + timedelta(minutes=minutes)


def test_each_feed_returns_its_output_rows(stream):
    doubled = stream.start(lambda numbers: numbers.select(F.col("n") * 2), NUMBERS)
    assert doubled.feed([(1,), (2,)]) == [(2,), (4,)]
    assert doubled.feed() == []
    assert doubled.feed([{"n": 5}]) == [(10,)]


def test_state_is_kept_between_feeds_and_complete_returns_the_whole_result(stream):
    counts = stream.start(lambda numbers: numbers.groupBy("n").count(), NUMBERS, output="complete")
    assert counts.feed([(1,), (1,)]) == [(1, 2)]
    assert sorted(counts.feed([(1,), (2,)])) == [(1, 3), (2, 1)]


def test_several_inputs_are_matched_by_name_and_fed_together(stream):
    def paid_orders(payments, orders, *, within):
        in_time = F.expr(f"paid BETWEEN ordered AND ordered + INTERVAL {within}")
        return orders.join(payments, (orders.id == payments.order_id) & in_time).select("id", "amount")

    inputs = {
        "orders": Input("id int, ordered timestamp", watermark=("ordered", "5 minutes")),
        "payments": Input("order_id int, paid timestamp, amount int", watermark=("paid", "5 minutes")),
    }
    batches = [
        {"orders": [(1, at(0)), (2, at(1))], "payments": [(1, at(2), 10)]},
        {"payments": [(2, at(3), 20), (1, at(40), 30)]},
    ]
    assert stream.run(paid_orders, inputs, batches, within="10 minutes") == [[(1, 10)], [(2, 20)]]


def test_two_streams_of_one_test_are_independent(stream):
    def distinct(numbers):
        return numbers.dropDuplicates(["n"])

    assert stream.run(distinct, NUMBERS, [[(1,)]]) == stream.run(distinct, NUMBERS, [[(1,)]]) == [[(1,)]]


def test_failing_transform_fails_the_test(stream):
    failing = stream.start(lambda numbers: numbers.select(F.assert_true(F.col("n") > 0)), NUMBERS)
    with pytest.raises(StreamingQueryException):
        failing.feed([(0,)])


def test_rows_that_do_not_fit_the_schema_are_an_error(stream):
    with pytest.raises(PySparkTypeError, match="IntegerType"):
        stream.start(lambda numbers: numbers, NUMBERS).feed([("one",)])


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (lambda stream: stream.feed([(1,)]), r"several inputs; pass the rows by input name: \['left', 'right'\]"),
        (lambda stream: stream.feed(middle=[(1,)]), r"unknown inputs \['middle'\]"),
    ],
)
def test_feed_of_an_ambiguous_or_unknown_input_is_an_error(stream, feed, message):
    union = stream.start(lambda left, right: left.union(right), {"left": NUMBERS, "right": NUMBERS})
    with pytest.raises(ValueError, match=message):
        feed(union)


def test_plugin_does_not_import_pyspark():
    code = "import sys, headrace.testing.plugin; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_session_has_delta_and_uses_utc(spark, tmp_path):
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
