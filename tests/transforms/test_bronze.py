"""deduplicate on streams."""

from datetime import datetime, timedelta

import pytest

from headrace.testing import Input
from headrace.transforms.bronze import deduplicate

ROWS = Input("id string, at timestamp", watermark=("at", "10 minutes"))


def at(minutes):
    return datetime(2026, 1, 1, 12) + timedelta(minutes=minutes)


def test_duplicate_within_the_watermark_is_dropped_also_in_a_later_batch(stream):
    first = [("a", at(0)), ("a", at(0)), ("b", at(1))]
    second = [("a", at(0)), ("c", at(2))]
    out = stream.run(deduplicate, ROWS, [first, second], keys=["id"])
    assert [sorted(rows) for rows in out] == [[("a", at(0)), ("b", at(1))], [("c", at(2))]]


def test_key_is_dropped_from_state_after_the_watermark(stream):
    out = stream.run(deduplicate, ROWS, [[("a", at(0))], [("b", at(60))], [("a", at(61))]], keys=["id"])
    assert out == [[("a", at(0))], [("b", at(60))], [("a", at(61))]]


def test_late_row_is_dropped(stream):
    out = stream.run(deduplicate, ROWS, [[("a", at(60))], [("late", at(49)), ("not late", at(51))]], keys=["id"])
    assert out == [[("a", at(60))], [("not late", at(51))]]


def test_forever_keeps_all_keys(stream):
    batches = [[("a", at(0))], [("b", at(60))], [("a", at(61))]]
    out = stream.run(deduplicate, Input("id string, at timestamp"), batches, keys=["id"], forever=True)
    assert out == [[("a", at(0))], [("b", at(60))], []]


def test_duplicates_are_equal_in_all_key_columns(stream):
    out = stream.run(deduplicate, ROWS, [[("a", at(0)), ("a", at(1)), ("a", at(0))]], keys=["id", "at"])
    assert sorted(out[0]) == [("a", at(0)), ("a", at(1))]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("id", "keys must be a list of one or more column names, not 'id'"),
        ([], r"keys must be a list of one or more column names, not \[\]"),
        (["id", "nr"], r"'keys' names unknown columns \['nr'\]; the columns are \['id', 'at'\]"),
    ],
)
def test_invalid_keys_are_an_error(stream, keys, message):
    with pytest.raises(ValueError, match=message):
        stream.start(deduplicate, ROWS, keys=keys)
