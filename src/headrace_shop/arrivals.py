"""Generate sample orders in the order of their arrival: out of event-time order, with duplicate, late and bad rows.

Each row comes with its fate: what the pipeline must do with it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import NamedTuple

# Points in time are milliseconds since 1970.
MINUTE_MS = 60_000
YEAR_MS = 365 * 24 * 60 * MINUTE_MS
DELAY_MS = 10 * MINUTE_MS  # the watermark's delay in bronze
LATE_BY_MS = range(15 * MINUTE_MS, 19 * MINUTE_MS)  # late in bronze, but not in gold, whose delay is 20 minutes
MARGIN_MS = 1 * MINUTE_MS  # rows that must not be late are at least this far from being late


@dataclass(frozen=True)
class Mix:
    """The share of rows with each fate, from 0 to 1. All other rows are good."""

    duplicate: float = 0.02  # a copy of a good row, soon after it
    malformed: float = 0.005  # the line cannot be parsed with the schema
    future: float = 0.002  # has an event time decades ahead
    invalid: float = 0.003  # fails an expectation
    late: float = 0.005  # Spark keeps or drops the row, depending on which rows are in the same batch
    warned: float = 0.001  # fails an expectation that only warns; the fate of the row is "good"


CLEAN = Mix(0, 0, 0, 0, 0, 0)


class SampleOrder(NamedTuple):
    """One line of an orders file, and its fate. `defect` is the name of the defect in the line, or "" without one."""

    line: str
    order_id: str
    ordered_at: str
    fate: str
    defect: str = ""


def generate_orders(
    rng: random.Random,
    row_numbers: range,
    *,
    start_ms: int,
    orders_per_minute: int,
    disorder_ms: int,
    customers: int,
    mix: Mix,
) -> Iterator[SampleOrder]:
    """Yield one order for each row number.

    Orders arrive from `start_ms` at a constant rate of `orders_per_minute`. The event time of a good order is at most
    `disorder_ms` before its arrival. Only orders with the fate "future" have an event time after their arrival.
    `customers` is the number of different customers.
    """
    draw = rng.random  # int(draw() * n) is much faster than rng.randrange(n)
    # A copy that is more rows behind its original could itself be late.
    max_copy_distance = (DELAY_MS - disorder_ms - MARGIN_MS) * orders_per_minute // MINUTE_MS
    shares = {field.name: getattr(mix, field.name) for field in fields(mix) if field.name != "duplicate"}
    total_share = sum(shares.values())
    customer_ids = [f"c{number:06d}" for number in range(1, customers + 1)]
    line_ends = [
        f'"quantity":{quantity},"unit_price":{cents / 100:.2f},"amount":{quantity * cents / 100:.2f}}}'
        for cents in (rng.randrange(100, 20_000) for _ in range(500))
        for quantity in range(1, 6)
    ]
    copies: dict[int, SampleOrder] = {}  # by the row number that the copy will have
    for row in row_numbers:
        if row in copies:
            yield copies.pop(row)
            continue
        arrival_ms = start_ms + (row - row_numbers.start) * MINUTE_MS // orders_per_minute
        ordered_at = format_time(arrival_ms - int(draw() * disorder_ms))
        customer_id, line_end = customer_ids[int(draw() * customers)], line_ends[int(draw() * len(line_ends))]
        line = f'{{"order_id":"o{row:09d}","customer_id":"{customer_id}","ordered_at":"{ordered_at}",{line_end}'
        order = SampleOrder(line, f"o{row:09d}", ordered_at, "good")
        chance = draw()
        if chance < total_share:
            (fate,) = rng.choices(list(shares), list(shares.values()))
            yield _with_fate(rng, order, fate, arrival_ms)
            continue
        yield order
        distance = min(max_copy_distance, row_numbers[-1] - row)
        if chance > 1 - mix.duplicate and distance:
            copies.setdefault(row + 1 + int(draw() * distance), order._replace(fate="duplicate"))


def format_time(time_ms: int) -> str:
    """Format a point in time like 2026-01-01T00:00:00.000Z."""
    return _format_minute(time_ms // MINUTE_MS) + _format_second(time_ms % MINUTE_MS)


def _with_fate(rng: random.Random, order: SampleOrder, fate: str, arrival_ms: int) -> SampleOrder:
    """Return the order, changed to be a row of this kind. `fate` is the name of a field of Mix, except "duplicate"."""
    if fate in DEFECTS:
        defect = rng.choice(list(DEFECTS[fate]))
        recorded_fate = "good" if fate == "warned" else fate
        return order._replace(line=DEFECTS[fate][defect](order.line), fate=recorded_fate, defect=defect)
    late_by_ms, years_ahead = rng.choice(LATE_BY_MS), rng.randrange(60, 90)
    ordered_at = format_time(arrival_ms - late_by_ms if fate == "late" else arrival_ms + years_ahead * YEAR_MS)
    return order._replace(
        line=_set_column(order.line, "ordered_at", f'"{ordered_at}"'), ordered_at=ordered_at, fate=fate
    )


def _set_column(line: str, column: str, value: str) -> str:
    return re.sub(rf'"{column}":("[^"]*"|[^,}}]+)', f'"{column}":{value}', line)


def _setter(column: str, value: str) -> Callable[[str], str]:
    """Return a function that replaces the value of a column in a line."""
    return partial(_set_column, column=column, value=value)


@lru_cache(maxsize=10_000)
def _format_minute(minutes_since_1970: int) -> str:
    return datetime.fromtimestamp(minutes_since_1970 * 60, UTC).strftime("%Y-%m-%dT%H:%M:")


@lru_cache(maxsize=MINUTE_MS)
def _format_second(milliseconds: int) -> str:
    return f"{milliseconds / 1000:06.3f}Z"


# For each fate, the functions that put a defect into a line, by the name of the defect.
# Every malformed line still contains its order_id, so that tests can identify the line in quarantine.
DEFECTS: dict[str, dict[str, Callable[[str], str]]] = {
    "malformed": {
        "truncated": lambda line: line[: len(line) // 2],
        "no last brace": lambda line: line[:-1],
        "trailing text": lambda line: f"{line} and more",
        "trailing comma": lambda line: f"{line},",
        "extra brace": lambda line: f"{line}}}",
        "two objects": lambda line: line + line,
        "array": lambda line: f"[{line}]",
        "not JSON": lambda line: re.sub(r'[{}":]', " ", line),
        "overflow": _setter("quantity", "99999999999"),
        "word for number": _setter("quantity", '"many"'),
        "fraction for integer": _setter("quantity", "1.5"),
        "word for time": _setter("ordered_at", '"yesterday"'),
        "too wide": _setter("amount", "123456789012345.00"),
        "object for number": _setter("amount", '{"cents":1}'),
    },
    "invalid": {
        "no customer": _setter("customer_id", "null"),
        "no time": _setter("ordered_at", "null"),
        "quantity 0": _setter("quantity", "0"),
        "quantity 5000": _setter("quantity", "5000"),
    },
    "warned": {"wrong amount": _setter("amount", "0.01")},
}
