"""Check Quartz cron expressions and time zones."""

from __future__ import annotations

import pytest

from headrace.config.databricks.cron import cron_error, is_time_zone


@pytest.mark.parametrize(
    "expression",
    [
        *("0 0 12 * * ?", "0 15 10 ? * MON-FRI", "0 0/5 14,18 * * ?", "0 10,44 14 ? 3 WED", "0 15 10 L * ?"),
        *("0 15 10 L-2 * ?", "0 15 10 LW * ?", "0 15 10 15W * ?", "0 15 10 ? * 6L", "0 15 10 ? * FRI#3"),
        *("0 15 10 ? * 6#3 2026-2030", "*/30 * * * * ?", "0 0 0 ? jan-mar sun"),
    ],
)
def test_valid_expressions(expression: str) -> None:
    assert cron_error(expression) == ""


@pytest.mark.parametrize(
    "expression",
    [
        *("", "* * * * *", "60 0 0 * * ?", "0 60 0 * * ?", "0 0 24 * * ?", "0 0 0 0 * ?", "0 0 0 32 * ?"),
        *("0 0 0 ? 13 1", "0 0 0 ? * 8", "0 0 0 ? * ?", "0 0 0 1 * 1", "0 0/0 0 * * ?", "0 0 0 45W * ?"),
        *("0 0 0 ? FOO 1", "0 0 0 ? * 6#6", "0 0 0 * * ? 1900", "0 , 0 * * ?", "a b c d e f", "@daily"),
    ],
)
def test_invalid_expressions(expression: str) -> None:
    assert cron_error(expression)


def test_time_zones() -> None:
    assert all(is_time_zone(name) for name in ("UTC", "Europe/Berlin", "GMT+2", "GMT-03:30", "America/New_York"))
    assert not any(is_time_zone(name) for name in ("Europe/Berln", "Europe", "", "../UTC", "GMT+2:99", "/etc/passwd"))
