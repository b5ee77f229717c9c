"""Made-up orders as they arrive: out of order, some twice, some late, some wrong, each with its fate."""

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
LATE = range(15 * MINUTE, 19 * MINUTE)  # late for bronze, never for gold, whose delay is 20 minutes
MARGIN = 1 * MINUTE  # how far a row that must not be late stays from being late


@dataclass(frozen=True)
class Mix:
    """The share of the rows that has each fate; the others are good."""

    duplicate: float = 0.02  # a copy of a good row, soon after it
    malformed: float = 0.005
    future: float = 0.002
    refused: float = 0.003  # breaks a rule
    late: float = 0.005  # may get through or be dropped: that depends on the batches
    warned: float = 0.001  # breaks a rule that only warns, and so is good all the same


CLEAN = Mix(0, 0, 0, 0, 0, 0)


class Arrival(NamedTuple):
    """One line of an orders file, and what must become of it."""

    line: str
    order_id: str
    ordered_at: str
    fate: str
    form: str = ""


def arrivals(
    rng: random.Random, numbers: range, *, clock: int, pace: int, disorder: int, customers: int, mix: Mix
) -> Iterator[Arrival]:
    """The orders of these numbers, none of an event time after the clock but those in the future."""
    draw = rng.random
    reach = (DELAY - disorder - MARGIN) * pace // MINUTE  # a copy further behind could itself be late
    odd = {field.name: getattr(mix, field.name) for field in fields(mix) if field.name != "duplicate"}
    odd_share = sum(odd.values())
    names = [f"c{number:06d}" for number in range(1, customers + 1)]
    goods = [
        f'"quantity":{quantity},"unit_price":{cents / 100:.2f},"amount":{quantity * cents / 100:.2f}}}'
        for cents in (rng.randrange(100, 20_000) for _ in range(500))
        for quantity in range(1, 6)
    ]
    copies: dict[int, Arrival] = {}
    for row in numbers:
        if row in copies:
            yield copies.pop(row)
            continue
        now = clock + (row - numbers.start) * MINUTE // pace
        at = iso(now - int(draw() * disorder))
        customer, good = names[int(draw() * customers)], goods[int(draw() * len(goods))]
        line = f'{{"order_id":"o{row:09d}","customer_id":"{customer}","ordered_at":"{at}",{good}'
        order = Arrival(line, f"o{row:09d}", at, "good")
        chance = draw()
        if chance < odd_share:
            (fate,) = rng.choices(list(odd), list(odd.values()))
            yield _odd(rng, order, fate, now)
            continue
        yield order
        ahead = min(reach, numbers[-1] - row)
        if chance > 1 - mix.duplicate and ahead:
            copies.setdefault(row + 1 + int(draw() * ahead), order._replace(fate="duplicate"))


def iso(moment: int) -> str:
    """Milliseconds since 1970 as 2026-01-01T00:00:00.000Z."""
    return _minute(moment // MINUTE) + _second(moment % MINUTE)


def _odd(rng: random.Random, order: Arrival, fate: str, now: int) -> Arrival:
    if fate in FORMS:
        form = rng.choice(list(FORMS[fate]))
        fate_told = "good" if fate == "warned" else fate
        return order._replace(line=FORMS[fate][form](order.line), fate=fate_told, form=form)
    behind, years = rng.choice(LATE), rng.randrange(60, 90)
    at = iso(now - behind if fate == "late" else now + years * YEAR)
    return order._replace(line=_set(order.line, "ordered_at", f'"{at}"'), ordered_at=at, fate=fate)


def _set(line: str, column: str, value: str) -> str:
    return re.sub(rf'"{column}":("[^"]*"|[^,}}]+)', f'"{column}":{value}', line)


def _setting(column: str, value: str) -> Callable[[str], str]:
    return partial(_set, column=column, value=value)


@lru_cache(maxsize=10_000)
def _minute(number: int) -> str:
    return datetime.fromtimestamp(number * 60, UTC).strftime("%Y-%m-%dT%H:%M:")


@lru_cache(maxsize=MINUTE)
def _second(milliseconds: int) -> str:
    return f"{milliseconds / 1000:06.3f}Z"


# Every malformed line still shows its order_id, so that it can be found again in quarantine.
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
        "overflow": _setting("quantity", "99999999999"),
        "word for number": _setting("quantity", '"many"'),
        "fraction for integer": _setting("quantity", "1.5"),
        "word for time": _setting("ordered_at", '"yesterday"'),
        "too wide": _setting("amount", "123456789012345.00"),
        "object for number": _setting("amount", '{"cents":1}'),
    },
    "refused": {
        "no customer": _setting("customer_id", "null"),
        "no time": _setting("ordered_at", "null"),
        "quantity 0": _setting("quantity", "0"),
        "quantity 5000": _setting("quantity", "5000"),
    },
    "warned": {"wrong amount": _setting("amount", "0.01")},
}
