"""Quartz cron expressions and time zones, as a schedule of Databricks takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
DAY = rf"(?:[1-7]|{'|'.join(DAYS)})"
PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?\Z")
OFFSET = re.compile(r"(?:UTC|GMT)(?:[+-]\d{1,2}(?::?[0-5]\d)?)?\Z")


@dataclass(frozen=True)
class Field:
    """One field of an expression: its numbers, the words that stand for them, what it may say beside them."""

    name: str
    least: int
    greatest: int
    words: tuple[str, ...] = ()
    special: str = r"(?!)"

    def allows(self, part: str) -> bool:
        """Whether one of the field's parts, between commas, can be read."""
        if re.fullmatch(self.special, part):
            return True
        match = PART.match(part)
        if match is None or match[3] == "0":
            return False
        if match[1] == "*":
            return match[2] is None
        return all(self._fits(text) for text in match.groups()[:2] if text is not None)

    def _fits(self, text: str) -> bool:
        return text in self.words or (text.isdecimal() and self.least <= int(text) <= self.greatest)


FIELDS = (
    Field("seconds", 0, 59),
    Field("minutes", 0, 59),
    Field("hours", 0, 23),
    Field("day of month", 1, 31, special=r"\?|L|L-([12]?\d|30)|LW|([1-9]|[12]\d|3[01])W"),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 1, 7, DAYS, special=rf"\?|L|{DAY}L|{DAY}#[1-5]"),
    Field("year", 1970, 2099),
)


def wrong_cron(expression: str) -> str:
    """What is wrong with a Quartz cron expression; empty when nothing is."""
    fields = expression.upper().split()
    if len(fields) not in (6, 7):
        return f"it has {len(fields)} fields and not 6 or 7: {', '.join(field.name for field in FIELDS[:6])}"
    for text, field in zip(fields, FIELDS, strict=False):
        if not all(field.allows(part) for part in text.split(",")):
            return f"the {field.name} cannot be '{text}'"
    if (fields[3] == "?") == (fields[5] == "?"):
        return "one of day of month and day of week must be '?', and only one"
    return ""


def is_time_zone(name: str) -> bool:
    """Whether there is such a time zone; a machine that knows none refuses none."""
    return OFFSET.match(name) is not None or _is_there(name) or not _is_there("Europe/Berlin")


def _is_there(name: str) -> bool:
    import zoneinfo  # only where there is a schedule

    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return True
