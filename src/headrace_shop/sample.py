"""Generate sample data of any size, with a ledger of each row's fate: `python -m headrace_shop.sample`."""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from headrace_shop.arrivals import CLEAN, DELAY_MS, MARGIN_MS, MINUTE_MS, Mix, format_time, generate_orders

DAY_MS = 24 * 60 * MINUTE_MS
LEDGER_HEADER = "row,file,order_id,ordered_at,fate,defect\n"
CUSTOMERS_HEADER = "customer_id,name,country,segment,updated_at"
NAMES = ("Ann Ashe", "Ben Brook", "Mia Rossi", '"Weir, Tom"', "Zoë Łuk")
COUNTRIES = ("DE", "FR", "GB", "IT", "NL", "PL")


@dataclass(frozen=True)
class Sample:
    """The generated files, and the number of rows with each fate."""

    orders: Path  # a directory
    customers: Path  # a directory
    ledger: Path
    fates: dict[str, int]


class _SampleEnd(NamedTuple):
    """Where a sample ends: the number of its rows and order files, and the latest event time of a good row.

    A new sample has no rows and files yet, and ends where it starts.
    """

    rows: int
    files: int
    time_ms: int


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

    `orders` and `customers` are numbers of rows, `files` is the number of order files. `start` is the date or time at
    which the first order arrives. `pace` is the number of orders that arrive per minute. `disorder` is the longest
    delay, in minutes, with which a good order arrives. If `mix` is None, the shares are the defaults of Mix.

    With `append`, the new orders continue an existing sample, whose customers are not changed; `start` is ignored.
    Without `append`, raise ValueError if the directory already has a sample.
    """
    sample = Sample(directory / "orders", directory / "customers", directory / "ledger.csv", Counter())
    if not 0 < files <= orders or customers < 1 or pace < 1:
        raise ValueError("needs at least one customer, one order per minute, one file, and one order per file")
    if not 0 <= disorder * MINUTE_MS < DELAY_MS - MARGIN_MS:
        raise ValueError(f"disorder must be from 0 to less than {(DELAY_MS - MARGIN_MS) // MINUTE_MS} minutes")
    if sample.ledger.exists() and not append:
        raise ValueError(f"{directory} already has a sample: append to it, or choose another directory")
    end = _read_end(sample) if append else _SampleEnd(rows=0, files=0, time_ms=_parse_time(start))
    if end.time_ms + orders * MINUTE_MS // pace > time.time() * 1000:
        raise ValueError("the last order would be in the future: start earlier, or increase the pace")

    for data_directory in (sample.orders, sample.customers):
        data_directory.mkdir(parents=True, exist_ok=True)
    row_numbers = range(end.rows + 1, end.rows + orders + 1)
    rows = generate_orders(
        random.Random(f"orders {seed} {end.rows}"),
        row_numbers,
        start_ms=end.time_ms,
        orders_per_minute=pace,
        disorder_ms=int(disorder * MINUTE_MS),
        customers=customers,
        mix=mix or Mix(),
    )
    modified_ns = _modification_times_ns(sample.orders, files)
    with sample.ledger.open("a", encoding="utf-8", newline="") as ledger:
        ledger.write("" if append else LEDGER_HEADER)
        for file in range(files):
            name = f"orders-{end.files + file + 1:05d}.json"
            row_numbers_of_file = row_numbers[orders * file // files : orders * (file + 1) // files]
            rows_of_file = list(islice(rows, len(row_numbers_of_file)))
            ledger.writelines(
                f"{number},{name},{row.order_id},{row.ordered_at},{row.fate},{row.defect}\n"
                for number, row in zip(row_numbers_of_file, rows_of_file, strict=True)
            )
            _publish(sample.orders / name, [row.line for row in rows_of_file], next(modified_ns))
            sample.fates.update(Counter(row.fate for row in rows_of_file))
    if not append:
        _write_customers(sample.customers, random.Random(f"customers {seed}"), customers, end.time_ms)
    return sample


def _write_customers(directory: Path, rng: random.Random, customers: int, orders_start_ms: int) -> None:
    """Write a file with all customers except every twentieth, then three files, each with updates of a tenth of them.

    A fifth of the updated customers have an update that is out of date: older than their row in the first file.
    """

    def customer_line(number: int, updated_ms: int) -> str:
        country, segment = rng.choice(COUNTRIES), rng.choice(("home", "trade"))
        return f"c{number:06d},{rng.choice(NAMES)},{country},{segment},{format_time(updated_ms)}"

    # The orders of all other customers have no match in silver's join.
    written_numbers = [number for number in range(1, customers + 1) if number % 20]
    modified_ns = _modification_times_ns(directory, 4)
    created_ms = orders_start_ms - 40 * DAY_MS
    first_lines = [CUSTOMERS_HEADER, *(customer_line(number, created_ms) for number in written_numbers)]
    _publish(directory / "customers-1.csv", first_lines, next(modified_ns))
    for days in range(1, 4):
        lines = [CUSTOMERS_HEADER]
        updated_numbers = rng.sample(written_numbers, math.ceil(len(written_numbers) / 10))
        for position, number in enumerate(updated_numbers):
            is_out_of_date = position % 5 == 0
            lines.append(customer_line(number, created_ms + (-days if is_out_of_date else days) * DAY_MS))
            if position % 7 == 0:  # a second update in the same file
                lines.append(customer_line(number, created_ms + days * DAY_MS - MINUTE_MS))
        _publish(directory / f"customers-{days + 1}.csv", lines, next(modified_ns))


def _read_end(sample: Sample) -> _SampleEnd:
    """Return where an existing sample ends, according to its ledger; raise ValueError if there is no ledger."""
    if not sample.ledger.exists():
        raise ValueError(f"there is no sample to append to: {sample.ledger} is missing")
    with sample.ledger.open(encoding="utf-8") as ledger:
        next(ledger)  # the header
        rows = [line.split(",") for line in ledger]
    files = {file for _, file, *_ in rows}
    latest = max(ordered_at for _, _, _, ordered_at, fate, _ in rows if fate == "good")
    return _SampleEnd(len(rows), len(files), _parse_time(latest))


def _parse_time(text: str) -> int:
    """Return an ISO date or time as milliseconds since 1970. A text without a time zone is in UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _modification_times_ns(directory: Path, count: int) -> Iterator[int]:
    """Return increasing modification times, 10 ms apart, for new files of a directory.

    Spark reads files in the order of their modification times. The new files follow all existing files.
    """
    step_ns = 10_000_000
    newest_ns = max((path.stat().st_mtime_ns for path in directory.iterdir()), default=0)
    first_ns = max(time.time_ns() - count * step_ns, newest_ns + step_ns)
    return iter(range(first_ns, first_ns + count * step_ns, step_ns))


def _publish(path: Path, lines: list[str], modified_ns: int) -> None:
    """Write a file atomically, so that a stream never reads a part of it. (A stream reads each file only once.)

    Spark ignores the hidden file that is written first.
    """
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    os.utime(hidden, ns=(modified_ns, modified_ns))
    hidden.rename(path)


def main(arguments: list[str] | None = None) -> None:
    """Generate the sample that the command line describes. If `arguments` is None, they are those of the process."""
    parser = argparse.ArgumentParser(prog="python -m headrace_shop.sample", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("data"), metavar="DIRECTORY")
    # The options have the types and defaults of the parameters of make_sample.
    defaults = make_sample.__kwdefaults__ or {}
    for name in ("orders", "customers", "files", "seed", "start", "pace", "disorder"):
        parser.add_argument(f"--{name}", type=type(defaults[name]), default=defaults[name])
    for field in fields(Mix):
        parser.add_argument(f"--{field.name}", type=float, default=field.default, metavar="SHARE")
    parser.add_argument("--clean", action="store_true", help="only good rows, but out of order")
    parser.add_argument("--append", action="store_true", help="continue the existing sample")
    options = vars(parser.parse_args(arguments))
    mix = Mix(*(options.pop(field.name) for field in fields(Mix)))
    try:
        sample = make_sample(options.pop("into"), mix=CLEAN if options.pop("clean") else mix, **options)
    except ValueError as error:
        parser.error(str(error))
    print(f"{sample.orders}: " + ", ".join(f"{count:,} {fate}" for fate, count in sample.fates.items()))


if __name__ == "__main__":
    main()
