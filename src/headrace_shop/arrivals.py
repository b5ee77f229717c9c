"""Generate sample orders as they would arrive: out of order, with duplicate, late and bad rows, and each row's fate."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import NamedTuple

MINUTE = 60_000  # times are milliseconds since 1970
YEAR = 365 * 24 * 60 * MINUTE
DELAY = 10 * MINUTE  # the watermark's delay in bronze
LATE = range(15 * MINUTE, 19 * MINUTE)  # late for bronze, but not for gold, whose delay is 20 minutes
MARGIN = 1 * MINUTE  # rows that must not be late are at least this far from being late


@dataclass(frozen=True)
class Mix:
    """The share of rows with each fate. All other rows are good."""

    duplicate: float = 0.02  # a copy of a good row, soon after it
    malformed: float = 0.005
    future: float = 0.002
    invalid: float = 0.003  # fails an expectation
    late: float = 0.005  # kept or dropped, depending on the batches
    warned: float = 0.001  # fails an expectation that only warns; its fate is "good"


CLEAN = Mix(0, 0, 0, 0, 0, 0)


class SampleOrder(NamedTuple):
    """One line of an orders file and its fate: what the pipeline must do with it."""

    line: str
    order_id: str
    ordered_at: str
    fate: str
    form: str = ""


def generate_orders(
    rng: random.Random, numbers: range, *, clock: int, pace: int, disorder: int, customers: int, mix: Mix
) -> Iterator[SampleOrder]:
    """Yield the orders with these numbers. The clock starts at `clock`; only "future" rows have later event times."""
    draw = rng.random
    max_distance = (DELAY - disorder - MARGIN) * pace // MINUTE  # a copy further behind could itself be late
    shares = {field.name: getattr(mix, field.name) for field in fields(mix) if field.name != "duplicate"}
    total_share = sum(shares.values())
    names = [f"c{number:06d}" for number in range(1, customers + 1)]
    products = [
        f'"quantity":{quantity},"unit_price":{cents / 100:.2f},"amount":{quantity * cents / 100:.2f}}}'
        for cents in (rng.randrange(100, 20_000) for _ in range(500))
        for quantity in range(1, 6)
    ]
    copies: dict[int, SampleOrder] = {}
    for row in numbers:
        if row in copies:
            yield copies.pop(row)
            continue
        now = clock + (row - numbers.start) * MINUTE // pace
        at = iso(now - int(draw() * disorder))
        customer, product = names[int(draw() * customers)], products[int(draw() * len(products))]
        line = f'{{"order_id":"o{row:09d}","customer_id":"{customer}","ordered_at":"{at}",{product}'
        order = SampleOrder(line, f"o{row:09d}", at, "good")
        chance = draw()
        if chance < total_share:
            (fate,) = rng.choices(list(shares), list(shares.values()))
            yield _change(rng, order, fate, now)
            continue
        yield order
        distance = min(max_distance, numbers[-1] - row)
        if chance > 1 - mix.duplicate and distance:
            copies.setdefault(row + 1 + int(draw() * distance), order._replace(fate="duplicate"))


def iso(moment: int) -> str:
    """Format milliseconds since 1970 like 2026-01-01T00:00:00.000Z."""
    return _minute(moment // MINUTE) + _second(moment % MINUTE)


def _change(rng: random.Random, order: SampleOrder, fate: str, now: int) -> SampleOrder:
    """Return the order, changed so that it has this fate."""
    if fate in FORMS:
        form = rng.choice(list(FORMS[fate]))
        recorded_fate = "good" if fate == "warned" else fate
        return order._replace(line=FORMS[fate][form](order.line), fate=recorded_fate, form=form)
    behind, years = rng.choice(LATE), rng.randrange(60, 90)
    at = iso(now - behind if fate == "late" else now + years * YEAR)
    return order._replace(line=_set(order.line, "ordered_at", f'"{at}"'), ordered_at=at, fate=fate)


def _set(line: str, column: str, value: str) -> str:
    return re.sub(rf'"{column}":("[^"]*"|[^,}}]+)', f'"{column}":{value}', line)


def _with_value(column: str, value: str) -> Callable[[str], str]:
    return partial(_set, column=column, value=value)


@lru_cache(maxsize=10_000)
def _minute(number: int) -> str:
    return datetime.fromtimestamp(number * 60, UTC).strftime("%Y-%m-%dT%H:%M:")


@lru_cache(maxsize=MINUTE)
def _second(milliseconds: int) -> str:
    return f"{milliseconds / 1000:06.3f}Z"


# Every malformed line still contains its order_id, so that it can be identified in quarantine.
FORMS: dict[str, dict[str, Callable[[str], str]]] = {
    "malformed": {
        "truncated": lambda line: line[: len(line) // 2],
        "no last brace": lambda line: line[:-1],
        "trailing text": lambda line: f"{line} and more",
        "trailing comma": lambda line: f"{line},",
        "extra brace": lambda line: f"{line}}}",
        "two objects": lambda line: line + line,
        "array": lambda line: f"[{line}]",
        "not JSON": lambda line: re.sub(r'[{}":]', " ", line),
        "overflow": _with_value("quantity", "99999999999"),
        "word for number": _with_value("quantity", '"many"'),
        "fraction for integer": _with_value("quantity", "1.5"),
        "word for time": _with_value("ordered_at", '"yesterday"'),
        "too wide": _with_value("amount", "123456789012345.00"),
        "object for number": _with_value("amount", '{"cents":1}'),
    },
    "invalid": {
        "no customer": _with_value("customer_id", "null"),
        "no time": _with_value("ordered_at", "null"),
        "quantity 0": _with_value("quantity", "0"),
        "quantity 5000": _with_value("quantity", "5000"),
    },
    "warned": {"wrong amount": _with_value("amount", "0.01")},
}
