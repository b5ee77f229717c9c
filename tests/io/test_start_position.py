"""The positions of `reset --from`: their texts, and the time zone of times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.io.start_position import Position, in_session_zone, parse_position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", Position()),
        ("checkpoint", Position(is_checkpoint=True)),
        ("42", Position(version=42)),
        ('{"orders": {"0": 120, "1": -2}}', Position(offsets={"orders": {"0": 120, "1": -2}})),
        ("2026-01-31", Position(time=datetime(2026, 1, 31))),
        ("2026-01-31T12:00Z", Position(time=datetime(2026, 1, 31, 12, tzinfo=UTC))),
    ],
)
def test_texts_of_positions(text, position):
    assert parse_position(text) == position


@pytest.mark.parametrize("text", ["yesterday", '{"orders": 7}', '{"orders": {"0": "a"}}', "{", "-1", "2026-13-01"])
def test_text_that_is_no_position(text):
    with pytest.raises(ValueError, match=r"is not beginning|not of the form"):
        parse_position(text)


def test_time_without_a_zone_is_in_the_zone_of_the_session(spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert in_session_zone(spark, datetime(2026, 1, 1, 9)) == datetime(2026, 1, 1, tzinfo=UTC)
        assert in_session_zone(spark, datetime(2026, 1, 1, tzinfo=UTC)).hour == 9
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
