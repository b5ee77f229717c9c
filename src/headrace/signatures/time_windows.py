"""Recognise time windows in the expressions into which Spark expands them, and describe them in words.

Spark analyses each DataFrame operation at once, and replaces a window by arithmetic on microseconds (4.2.0). The
patterns match the text of that arithmetic, in which column ids have been replaced.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CONVERTED = r"precisetimestampconversion\((.+?), Timestamp\w*, LongType\)"
WINDOW = re.compile(
    rf"named_struct\(start, (?:knownnullable\()?precisetimestampconversion\(\(\({CONVERTED} - CASE WHEN .*? "
    r"- (-?\d+)\) % (\d+)\).*\+ (\d+)\), LongType, Timestamp\w*\)+$"
)
SESSION = re.compile(
    rf"named_struct\(start, precisetimestampconversion\({CONVERTED}, LongType, Timestamp\w*\), end, "
    r".*?cast\(\1 \+ cast\((.+) as interval\) as timestamp\w*\).*$"
)
WINDOW_TIME = re.compile(
    r"precisetimestampconversion\(\(precisetimestampconversion\((window\(.+?\))\.end, Timestamp\w*, LongType\) - 1\), "
    r"LongType, Timestamp\w*\)"
)
AMOUNT = re.compile(r"(-?\d+) (week|day|hour|minute|second|millisecond|microsecond)s?\b", re.IGNORECASE)
# The units in which durations are described, in microseconds.
UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1000}


class TimeWindow(NamedTuple):
    """A time window: the time that is grouped, and its text, such as `window(orders.at, 15 minutes)`."""

    time: str
    text: str

    @property
    def added_filters(self) -> set[str]:
        """Return the filters that Spark adds for the window: for null times, gaps between windows, empty sessions."""
        start, end = f"{self.text}.start", f"{self.text}.end"
        return {f"isnotnull({self.time})", f"({self.time} >= {start})", f"({self.time} < {end})", f"({end} > {start})"}


def window_computed_by(text: str) -> TimeWindow | None:
    """Return the window that the text of an expression computes; None if it computes something else."""
    if match := WINDOW.match(text):
        time, offset, slide, size = match[1], int(match[2]), int(match[3]), int(match[4])
        parts = [time, duration(size)]
        parts += [f"slide {duration(slide)}"] if slide != size else []
        parts += [f"offset {duration(offset)}"] if offset else []
        return TimeWindow(time, f"window({', '.join(parts)})")
    if match := SESSION.match(text):
        return TimeWindow(match[1], f"session_window({match[1]}, gap {_gap(match[2])})")
    return None


def replace_window_times(text: str) -> str:
    """Return the text with `window_time(…)` for the arithmetic of that function."""
    return WINDOW_TIME.sub(r"window_time(\1)", text)


def describe_window(key: str) -> tuple[str, str] | None:
    """Return the time and the description, such as "15 minutes, slide 5 minutes", of a window's text.

    Return None if the text is not that of a window.
    """
    match = re.fullmatch(r"(?:session_)?window\((.+?), ((?:gap .+|-?\d+ \w+(?:, (?:slide|offset) -?\d+ \w+)*))\)", key)
    return (match[1], match[2]) if match else None


def _gap(text: str) -> str:
    """Return the gap of a session window in one unit. A gap that depends on the row is returned unchanged."""
    if AMOUNT.sub("", text).replace("interval", "").strip():
        return text
    lengths = {**UNITS, "week": 7 * UNITS["day"], "microsecond": 1}
    return duration(sum(int(count) * lengths[unit.lower()] for count, unit in AMOUNT.findall(text)))


def duration(microseconds: int) -> str:
    """Return a duration in the largest unit that expresses it exactly, such as "15 minutes"."""
    for unit, length in UNITS.items():
        if microseconds % length == 0:
            count = microseconds // length
            return f"{count} {unit}" if abs(count) == 1 else f"{count} {unit}s"
    return f"{microseconds} microseconds"
