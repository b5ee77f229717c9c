"""aggregate_windows: the rows that it emits, and when."""

from datetime import datetime, timedelta

import pytest

from headrace.testing import Input
from headrace.transforms.gold import aggregate_windows

ROWS = Input("at timestamp, shop string, amount int", watermark=("at", "10 minutes"))
REVENUE = {"orders": {"count": "*"}, "revenue": {"sum": "amount"}}


def at(minutes):
    return datetime(2026, 1, 1, 12) + timedelta(minutes=minutes)


def test_tumbling_window_is_emitted_after_the_watermark(stream):
    revenue = stream.start(aggregate_windows, ROWS, time="at", window="5 minutes", by=["shop"], aggregates=REVENUE)
    assert revenue.feed([(at(1), "n", 10), (at(4), "n", 5), (at(4), "s", 7), (at(5), "n", 1)]) == []
    out = revenue.feed([(at(15), "n", 1)])
    assert sorted(out) == [(at(0), at(5), "n", 2, 15), (at(0), at(5), "s", 1, 7)]
    assert out[0].__fields__ == ["window_start", "window_end", "shop", "orders", "revenue"]
    assert revenue.feed([(at(2), "n", 99), (at(20), "n", 1)]) == [(at(5), at(10), "n", 1, 1)]  # 99 is late


def test_sliding_windows_overlap(stream):
    settings = {"time": "at", "window": "10 minutes", "slide": "5 minutes", "aggregates": REVENUE}
    out = stream.run(aggregate_windows, ROWS, [[(at(7), "n", 3)], [(at(60), "n", 0)]], **settings)
    assert sorted(out[1]) == [(at(0), at(10), 1, 3), (at(5), at(15), 1, 3)]


def test_session_window_ends_after_the_gap(stream):
    settings = {"time": "at", "gap": "5 minutes", "by": ["shop"], "aggregates": REVENUE}
    visits = [(at(0), "n", 1), (at(4), "n", 2), (at(10), "n", 4), (at(1), "s", 8)]
    out = stream.run(aggregate_windows, ROWS, [visits, [(at(60), "x", 0)]], **settings)
    assert sorted(out[1]) == [
        (at(0), at(9), "n", 2, 3),
        (at(1), at(6), "s", 1, 8),
        (at(10), at(15), "n", 1, 4),
    ]


def test_every_aggregate_function(stream):
    aggregates = {
        "rows": {"count": "*"},
        "amounts": {"count": "amount"},
        "total": {"sum": "amount"},
        "average": {"avg": "amount"},
        "mean": {"mean": "amount"},
        "smallest": {"min": "amount"},
        "largest": {"max": "amount"},
        "spread": {"stddev": "amount"},
        "shops": {"approx_count_distinct": "shop"},
        "shop_names": {"collect_set": "shop"},
        "opening": {"first": "shop"},
        "closing": {"last": "shop"},
    }
    rows = [(at(0), "n", 1), (at(1), "n", 5), (at(2), "n", None)]
    out = stream.run(
        aggregate_windows, ROWS, [rows, [(at(80), "x", 0)]], time="at", window="1 hour", aggregates=aggregates
    )
    row = out[1][0].asDict()
    assert row.pop("spread") == pytest.approx(8**0.5)
    assert row == {
        "window_start": at(0),
        "window_end": at(60),
        "rows": 3,
        "amounts": 2,
        "total": 6,
        "average": 3.0,
        "mean": 3.0,
        "smallest": 1,
        "largest": 5,
        "shops": 1,
        "shop_names": ["n"],
        "opening": "n",
        "closing": "n",
    }


def test_update_mode_emits_each_change_immediately(stream):
    settings = {"time": "at", "window": "5 minutes", "aggregates": {"revenue": {"sum": "amount"}}}
    batches = [[(at(1), "n", 10)], [(at(2), "n", 5)]]
    out = stream.run(aggregate_windows, ROWS, batches, output="update", **settings)
    assert out == [[(at(0), at(5), 10)], [(at(0), at(5), 15)]]


VALID = {"time": "at", "window": "5 minutes", "aggregates": REVENUE}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"time": "when"},
            r"'time' names unknown columns \['when'\]; the columns are \['at', 'shop', 'amount'\]",
        ),
        ({"by": ["country"]}, r"'by' names unknown columns \['country'\]"),
        ({"by": "shop"}, "by must be a list of column names, not 'shop'"),
        ({"window": None}, "set 'window'"),
        ({"gap": "5 minutes"}, "set 'window'"),
        ({"window": None, "slide": "1 minute", "gap": "5 minutes"}, "set 'window'"),
        ({"window": "5 parsecs"}, "window must be a duration like '5 minutes', not '5 parsecs'"),
        ({"window": 60}, "window must be a duration like '5 minutes', not 60"),
        ({"slide": "0 minutes"}, "slide must be a duration like '5 minutes', not '0 minutes'"),
        ({"window": None, "gap": "a while", "by": ["shop"]}, "gap must be a duration"),
        ({"window": None, "gap": "5 minutes"}, "session windows of a stream need 'by'"),
        ({"aggregates": {}}, "needs one or more aggregates"),
        ({"aggregates": {"window_end": {"count": "*"}}}, "columns with different names"),
        (
            {"aggregates": {"n": {"median": "amount"}}},
            "'n' has an unknown function 'median'; known: .'count', 'sum'",
        ),
        ({"aggregates": {"n": {"sum": "price"}}}, r"aggregate 'n' names unknown columns \['price'\]"),
        ({"aggregates": {"n": {"sum": "*"}}}, r"aggregate 'n' names unknown columns \['\*'\]"),
        (
            {"aggregates": {"n": "sum(amount)"}},
            r"aggregate 'n' must be like {sum: amount}, not 'sum\(amount\)'",
        ),
    ],
)
def test_invalid_settings_are_an_error(stream, settings, message):
    with pytest.raises(ValueError, match=message):
        stream.start(aggregate_windows, ROWS, **(VALID | settings))
