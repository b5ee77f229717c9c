"""Sample data of any size, and a ledger of what must become of each row: `python -m headrace_shop.sample`."""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from headrace_shop.arrivals import CLEAN, DELAY, MARGIN, MINUTE, Mix, arrivals, iso

DAY = 24 * 60 * MINUTE
LEDGER = "row,file,order_id,ordered_at,fate,form\n"
CUSTOMERS = "customer_id,name,country,segment,updated_at"
NAMES = ("Ann Ashe", "Ben Brook", "Mia Rossi", '"Weir, Tom"', "Zoë Łuk")
COUNTRIES = ("DE", "FR", "GB", "IT", "NL", "PL")


@dataclass(frozen=True)
class Sample:
    """What was made: where it lies, and how many rows have each fate."""

    orders: Path
    customers: Path
    ledger: Path
    fates: dict[str, int]


def make_sample(
    directory: Path,
    *,
    orders: int = 100_000,
    customers: int = 1_000,
    files: int = 20,
    seed: int = 7,
    start: str = "2026-01-01",
    pace: int = 1_000,
    disorder: float = 5.0,
    mix: Mix | None = None,
    append: bool = False,
) -> Sample:
    """Write orders, customers and the ledger; the same arguments give the same bytes.

    `pace` is orders per minute of event time, `disorder` how many minutes a good order may arrive too late.
    To append continues the orders where the ledger ends, and leaves the customers as they are.
    """
    sample = Sample(directory / "orders", directory / "customers", directory / "ledger.csv", Counter())
    if not 0 < files <= orders or customers < 1 or pace < 1:
        raise ValueError("there must be one customer, one order a minute, one file, and one order per file")
    if not 0 <= disorder * MINUTE < DELAY - MARGIN:
        raise ValueError(f"disorder must be from 0 to less than {(DELAY - MARGIN) // MINUTE} minutes")
    if sample.ledger.exists() and not append:
        raise ValueError(f"{directory} holds a sample already: append to it, or choose another directory")
    rows_before, files_before, clock = _end_of(sample) if append else (0, 0, _milliseconds(start))
    if clock + orders * MINUTE // pace > time.time() * 1000:
        raise ValueError("the last order would lie in the future: start earlier, or raise the pace")

    for made in (sample.orders, sample.customers):
        made.mkdir(parents=True, exist_ok=True)
    numbers = range(rows_before + 1, rows_before + orders + 1)
    rows = arrivals(
        random.Random(f"orders {seed} {rows_before}"),
        numbers,
        clock=clock,
        pace=pace,
        disorder=int(disorder * MINUTE),
        customers=customers,
        mix=mix or Mix(),
    )
    stamps = _stamps(sample.orders, files)
    with sample.ledger.open("a", encoding="utf-8", newline="") as ledger:
        ledger.write("" if append else LEDGER)
        for file in range(files):
            name = f"orders-{files_before + file + 1:05d}.json"
            own = numbers[orders * file // files : orders * (file + 1) // files]
            block = list(islice(rows, len(own)))
            ledger.writelines(
                f"{number},{name},{row.order_id},{row.ordered_at},{row.fate},{row.form}\n"
                for number, row in zip(own, block, strict=True)
            )
            _publish(sample.orders / name, [row.line for row in block], next(stamps))
            sample.fates.update(Counter(row.fate for row in block))
    if not append:
        _make_customers(sample.customers, random.Random(f"customers {seed}"), customers, clock)
    return sample


def _make_customers(directory: Path, rng: random.Random, customers: int, clock: int) -> None:
    """All but each twentieth; then three files of updates, a fifth of them older than what they update."""

    def line(number: int, at: int) -> str:
        country, segment = rng.choice(COUNTRIES), rng.choice(("home", "trade"))
        return f"c{number:06d},{rng.choice(NAMES)},{country},{segment},{iso(at)}"

    known = [number for number in range(1, customers + 1) if number % 20]
    stamps = _stamps(directory, 4)
    opened = clock - 40 * DAY
    first = [CUSTOMERS, *(line(number, opened) for number in known)]
    _publish(directory / "customers-1.csv", first, next(stamps))
    for days in range(1, 4):
        lines = [CUSTOMERS]
        for count, number in enumerate(rng.sample(known, -(-len(known) // 10))):
            lines.append(line(number, opened + (days if count % 5 else -days) * DAY))
            if count % 7 == 0:  # a second time in one file
                lines.append(line(number, opened + days * DAY - MINUTE))
        _publish(directory / f"customers-{days + 1}.csv", lines, next(stamps))


def _end_of(sample: Sample) -> tuple[int, int, int]:
    """How many rows and files there are, and the latest event time that counts."""
    if not sample.ledger.exists():
        raise ValueError(f"there is nothing to append to: {sample.ledger} is missing")
    with sample.ledger.open(encoding="utf-8") as ledger:
        next(ledger)
        rows = [line.split(",") for line in ledger]
    latest = max(row[3] for row in rows if row[4] == "good")
    return len(rows), len({row[1] for row in rows}), _milliseconds(latest)


def _milliseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _stamps(directory: Path, count: int) -> Iterator[int]:
    """Increasing modification times, because Spark reads files in that order: 10 ms apart, up to now."""
    step = 10_000_000
    newest = max((path.stat().st_mtime_ns for path in directory.iterdir()), default=0)
    first = max(time.time_ns() - count * step, newest + step)
    return iter(range(first, first + count * step, step))


def _publish(path: Path, lines: list[str], stamp: int) -> None:
    """Whole or not at all: a stream reads a half-written file once, as it is."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    os.utime(hidden, ns=(stamp, stamp))
    hidden.rename(path)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m headrace_shop.sample", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("data"), metavar="DIRECTORY")
    defaults = make_sample.__kwdefaults__ or {}
    for name in ("orders", "customers", "files", "seed", "start", "pace", "disorder"):
        parser.add_argument(f"--{name}", type=type(defaults[name]), default=defaults[name])
    for field in fields(Mix):
        parser.add_argument(f"--{field.name}", type=float, default=field.default, metavar="SHARE")
    parser.add_argument("--clean", action="store_true", help="only good rows, though out of order")
    parser.add_argument("--append", action="store_true", help="continue the orders that are there")
    given = vars(parser.parse_args(arguments))
    shares = Mix(*(given.pop(field.name) for field in fields(Mix)))
    try:
        sample = make_sample(given.pop("into"), mix=CLEAN if given.pop("clean") else shares, **given)
    except ValueError as error:
        parser.error(str(error))
    print(f"{sample.orders}: " + ", ".join(f"{count:,} {fate}" for fate, count in sample.fates.items()))


if __name__ == "__main__":
    main()
