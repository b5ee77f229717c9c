"""Validate the Quartz cron expressions and time zones of Databricks schedules."""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
DAY = rf"(?:[1-7]|{'|'.join(DAYS)})"
# `*`, a value or a range, each with an optional step: `*/5`, `MON`, `9-17`, `0/15`.
FIELD_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?\Z")
UTC_OFFSET = re.compile(r"(?:UTC|GMT)(?:[+-]\d{1,2}(?::?[0-5]\d)?)?\Z")


@dataclass(frozen=True)
class Field:
    """One field of a cron expression: the range of its numbers, names of values, and a pattern for special values."""

    name: str
    minimum: int
    maximum: int
    names: tuple[str, ...] = ()
    special: str = r"(?!)"  # matches nothing

    def allows(self, part: str) -> bool:
        """Return whether one comma-separated part of the field, in upper case, is valid."""
        if re.fullmatch(self.special, part):
            return True
        match = FIELD_PART.match(part)
        if match is None or match[3] == "0":
            return False
        start, end, _ = match.groups()
        if start == "*":
            return end is None
        return self._is_in_range(start) and (end is None or self._is_in_range(end))

    def _is_in_range(self, text: str) -> bool:
        return text in self.names or (text.isdecimal() and self.minimum <= int(text) <= self.maximum)


# Quartz's special values: "?" any, "L" last, "W" the nearest weekday, "MON#2" the second Monday of the month.
FIELDS = (
    Field("seconds", 0, 59),
    Field("minutes", 0, 59),
    Field("hours", 0, 23),
    Field("day of month", 1, 31, special=r"\?|L|L-([12]?\d|30)|LW|([1-9]|[12]\d|3[01])W"),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 1, 7, DAYS, special=rf"\?|L|{DAY}L|{DAY}#[1-5]"),
    Field("year", 1970, 2099),  # optional
)


def cron_error(expression: str) -> str:
    """Return the reason why a Quartz cron expression is invalid; an empty string if it is valid."""
    fields = expression.upper().split()
    if len(fields) not in (6, 7):
        return f"it has {len(fields)} fields instead of 6 or 7: {', '.join(field.name for field in FIELDS[:6])}"
    for text, field in zip(fields, FIELDS, strict=False):  # not strict: an expression may lack the year
        if not all(field.allows(part) for part in text.split(",")):
            return f"the {field.name} field cannot be '{text}'"
    if (fields[3] == "?") == (fields[5] == "?"):
        return "exactly one of day of month and day of week must be '?'"
    return ""


def is_time_zone(name: str) -> bool:
    """Return whether the name is an offset such as UTC+2, or a time zone in this machine's time zone database.

    On a machine without such a database, return True for every name.
    """
    has_database = _is_in_database("Europe/Berlin")
    return UTC_OFFSET.match(name) is not None or _is_in_database(name) or not has_database


def _is_in_database(name: str) -> bool:
    """Return whether the time zone is in the database; False if there is no database."""
    import zoneinfo  # imported only for bundles that have a schedule

    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return True
