"""Quartz cron expressions: whether one is well formed."""

from __future__ import annotations

import re

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("seconds", 0, 59, []),
    ("minutes", 0, 59, []),
    ("hours", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, MONTHS),
    ("day of week", 1, 7, DAYS),
    ("year", 1970, 2199, []),
)
PART = re.compile(r"(?P<start>\*|\w+)(?:-(?P<end>\w+))?(?:/(?P<step>\d+))?")
SPECIAL = {"day of month": re.compile(r"L(-\d+)?|LW|\d{1,2}W"), "day of week": re.compile(r"L|\w{1,3}L|\w{1,3}#[1-5]")}


def fault_of(expression: str) -> str:
    """What is wrong with an expression, or nothing."""
    given = expression.upper().split()
    if len(given) not in (6, 7):
        return f"6 or 7 fields are needed, and there are {len(given)}"
    if (given[3] == "?") == (given[5] == "?"):
        return "exactly one of day of month and day of week must be '?'"
    for text, (name, low, high, words) in zip(given, FIELDS, strict=False):
        if text == "?" and name.startswith("day"):
            continue
        for part in text.split(","):
            if not (name in SPECIAL and SPECIAL[name].fullmatch(part)) and not _fits(part, low, high, words):
                return f"'{text}' is not valid for {name}"
    return ""


def _fits(part: str, low: int, high: int, words: list[str]) -> bool:
    match = PART.fullmatch(part)
    if match is None or (match["step"] is not None and int(match["step"]) == 0):
        return False
    ends = [end for end in (match["start"], match["end"]) if end is not None]
    if ends[0] == "*":
        return len(ends) == 1
    return all(end in words or (end.isdigit() and low <= int(end) <= high) for end in ends)
