"""The shop's rule for amounts, and its revenue."""

from datetime import datetime, timedelta
from decimal import Decimal

from headrace.testing import Input
from headrace_shop.orders import ORDER, amount_matches, revenue


def at(minutes):
    return datetime(2026, 1, 1, 12) + timedelta(minutes=minutes)


def test_revenue_per_minute_and_country(stream):
    silver = Input("ordered_at timestamp, country string, amount decimal(10,2)", ("ordered_at", "20 minutes"))
    orders = [
        (at(0.1), "DE", Decimal("9.95")),
        (at(0.9), "DE", Decimal("0.05")),
        (at(0.5), None, Decimal("3.00")),
        (at(1), "DE", Decimal("7.00")),
    ]
    out = stream.run(revenue, silver, [orders, [(at(21), "FR", Decimal("0.01"))]], window="1 minute")
    assert out[0] == []
    assert set(out[1]) == {
        (at(0), at(1), "DE", 2, Decimal("10.00")),
        (at(0), at(1), None, 1, Decimal("3.00")),
    }
    assert out[1][0].__fields__ == ["window_start", "window_end", "country", "orders", "revenue"]


def test_amount_must_match_to_the_cent(spark):
    rows = [
        ("right", "c", at(0), 3, Decimal("0.10"), Decimal("0.30")),
        ("wrong", "c", at(0), 3, Decimal("0.10"), Decimal("0.31")),
        ("unknown", "c", at(0), None, Decimal("0.10"), Decimal("0.31")),
    ]
    checked = spark.createDataFrame(rows, ORDER).select("order_id", amount_matches().alias("good")).collect()
    assert dict(checked) == {"right": True, "wrong": False, "unknown": None}
