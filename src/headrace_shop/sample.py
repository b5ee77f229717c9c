"""Generate sample data of any size, with a ledger of each row's fate: `python -m headrace_shop.sample`."""

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

from headrace_shop.arrivals import CLEAN, DELAY, MARGIN, MINUTE, Mix, generate_orders, iso

DAY = 24 * 60 * MINUTE
LEDGER = "row,file,order_id,ordered_at,fate,form\n"
CUSTOMERS = "customer_id,name,country,segment,updated_at"
NAMES = ("Ann Ashe", "Ben Brook", "Mia Rossi", '"Weir, Tom"', "Zoë Łuk")
COUNTRIES = ("DE", "FR", "GB", "IT", "NL", "PL")


@dataclass(frozen=True)
class Sample:
    """The generated files, and the number of rows with each fate."""

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
    """Write orders, customers and the ledger. The same arguments give the same bytes.

    `pace` is the number of orders per minute of event time, `disorder` the delay in minutes with which a good order may
    arrive. `append` continues the orders where the ledger ends, and does not change the customers.
    """
    sample = Sample(directory / "orders", directory / "customers", directory / "ledger.csv", Counter())
    if not 0 < files <= orders or customers < 1 or pace < 1:
        raise ValueError("needs at least one customer, one order per minute, one file, and one order per file")
    if not 0 <= disorder * MINUTE < DELAY - MARGIN:
        raise ValueError(f"disorder must be from 0 to less than {(DELAY - MARGIN) // MINUTE} minutes")
    if sample.ledger.exists() and not append:
        raise ValueError(f"{directory} already has a sample: append to it, or choose another directory")
    rows_before, files_before, clock = _end_of(sample) if append else (0, 0, _milliseconds(start))
    if clock + orders * MINUTE // pace > time.time() * 1000:
        raise ValueError("the last order would be in the future: start earlier, or increase the pace")

    for data in (sample.orders, sample.customers):
        data.mkdir(parents=True, exist_ok=True)
    numbers = range(rows_before + 1, rows_before + orders + 1)
    rows = generate_orders(
        random.Random(f"orders {seed} {rows_before}"),
        numbers,
        clock=clock,
        pace=pace,
        disorder=int(disorder * MINUTE),
        customers=customers,
        mix=mix or Mix(),
    )
    times = _modification_times(sample.orders, files)
    with sample.ledger.open("a", encoding="utf-8", newline="") as ledger:
        ledger.write("" if append else LEDGER)
        for file in range(files):
            name = f"orders-{files_before + file + 1:05d}.json"
            file_numbers = numbers[orders * file // files : orders * (file + 1) // files]
            file_rows = list(islice(rows, len(file_numbers)))
            ledger.writelines(
                f"{number},{name},{row.order_id},{row.ordered_at},{row.fate},{row.form}\n"
                for number, row in zip(file_numbers, file_rows, strict=True)
            )
            _publish(sample.orders / name, [row.line for row in file_rows], next(times))
            sample.fates.update(Counter(row.fate for row in file_rows))
    if not append:
        _write_customers(sample.customers, random.Random(f"customers {seed}"), customers, clock)
    return sample


def _write_customers(directory: Path, rng: random.Random, customers: int, clock: int) -> None:
    """Write all customers except every twentieth, then three files of updates, a fifth of which are out of date."""

    def line(number: int, at: int) -> str:
        country, segment = rng.choice(COUNTRIES), rng.choice(("home", "trade"))
        return f"c{number:06d},{rng.choice(NAMES)},{country},{segment},{iso(at)}"

    known = [number for number in range(1, customers + 1) if number % 20]
    times = _modification_times(directory, 4)
    created_at = clock - 40 * DAY
    first = [CUSTOMERS, *(line(number, created_at) for number in known)]
    _publish(directory / "customers-1.csv", first, next(times))
    for days in range(1, 4):
        lines = [CUSTOMERS]
        for count, number in enumerate(rng.sample(known, -(-len(known) // 10))):
            lines.append(line(number, created_at + (days if count % 5 else -days) * DAY))
            if count % 7 == 0:  # a second update in the same file
                lines.append(line(number, created_at + days * DAY - MINUTE))
        _publish(directory / f"customers-{days + 1}.csv", lines, next(times))


def _end_of(sample: Sample) -> tuple[int, int, int]:
    """Return the number of rows and files, and the latest event time of a good row."""
    if not sample.ledger.exists():
        raise ValueError(f"there is no sample to append to: {sample.ledger} is missing")
    with sample.ledger.open(encoding="utf-8") as ledger:
        next(ledger)
        rows = [line.split(",") for line in ledger]
    latest = max(row[3] for row in rows if row[4] == "good")
    return len(rows), len({row[1] for row in rows}), _milliseconds(latest)


def _milliseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _modification_times(directory: Path, count: int) -> Iterator[int]:
    """Return increasing modification times, 10 ms apart and up to now: Spark reads files in this order."""
    step = 10_000_000
    newest = max((path.stat().st_mtime_ns for path in directory.iterdir()), default=0)
    first = max(time.time_ns() - count * step, newest + step)
    return iter(range(first, first + count * step, step))


def _publish(path: Path, lines: list[str], modified: int) -> None:
    """Write a file atomically: a stream would read a half-written file, and never read it again."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    os.utime(hidden, ns=(modified, modified))
    hidden.rename(path)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m headrace_shop.sample", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("data"), metavar="DIRECTORY")
    defaults = make_sample.__kwdefaults__ or {}
    for name in ("orders", "customers", "files", "seed", "start", "pace", "disorder"):
        parser.add_argument(f"--{name}", type=type(defaults[name]), default=defaults[name])
    for field in fields(Mix):
        parser.add_argument(f"--{field.name}", type=float, default=field.default, metavar="SHARE")
    parser.add_argument("--clean", action="store_true", help="only good rows, but out of order")
    parser.add_argument("--append", action="store_true", help="continue an existing sample")
    options = vars(parser.parse_args(arguments))
    mix = Mix(*(options.pop(field.name) for field in fields(Mix)))
    try:
        sample = make_sample(options.pop("into"), mix=CLEAN if options.pop("clean") else mix, **options)
    except ValueError as error:
        parser.error(str(error))
    print(f"{sample.orders}: " + ", ".join(f"{count:,} {fate}" for fate, count in sample.fates.items()))


if __name__ == "__main__":
    main()
