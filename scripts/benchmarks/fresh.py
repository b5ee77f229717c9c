"""How old a row is when it is in silver, and in gold's state: Headrace against three free-running queries."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path

import measure as costs
from arrival import Watch
from feed import Stock
from figures import Figure, Section, middle, quantile
from ground import Attempt, Ground

NAMES = {"A": "headrace", "B": "by hand"}
ON_DISK = {  # where one keeps a large state
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
MERGING = {"spark.databricks.delta.autoCompact.enabled": "true"}
SPAN = 300.0  # seconds between two words on how it goes
WARM = 60.0  # seconds of feeding before a window begins
PATIENCE = 900.0


@dataclass(frozen=True)
class Window:
    """What one window saw: the ages of its files, in their order."""

    silver: list[float]
    gold: list[float]
    cores: float
    others: float

    def trend(self) -> str:
        """Whether rows get older as the run does."""
        third = max(1, len(self.silver) // 3)
        return (
            f"first third {middle(self.silver[:third]):.1f} and {middle(self.gold[:third]):.1f} s, "
            f"last third {middle(self.silver[-third:]):.1f} and {middle(self.gold[-third:]):.1f} s"
        )


def measure(ground: Ground) -> Section:
    """A window per letter of the order, each in a session of its own, so that all are as old."""
    ground.warm_up()
    warm = WARM if not ground.is_trial else 10.0
    lengths = list(islice(chain(ground.minutes, repeat(ground.minutes[-1])), len(ground.order)))
    files = int(warm + 60 * max(lengths) + PATIENCE)
    stock = Stock.make(ground.home / "samples" / "feed", files=files, state=ground.state)
    windows: dict[str, list[Window]] = {name: [] for name in NAMES.values()}
    for number, (letter, minutes) in enumerate(zip(ground.order, lengths, strict=True), 1):
        name = NAMES[letter]
        costs.say(f"fresh: {name}, window {number} of {len(ground.order)}, {minutes:g} minutes …")
        window = _window(ground, name, stock, warm, 60 * minutes)
        windows[name].append(window)
        costs.say(
            f"  {name}: in silver after {middle(window.silver):.2f} s, in gold after {middle(window.gold):.2f} s; "
            f"{window.trend()}; {window.cores:.2f} cores, others {window.others:.2f}"
        )
    silver = {name: [age for window in own for age in window.silver] for name, own in windows.items()}
    gold = {name: [age for window in own for age in window.gold] for name, own in windows.items()}
    ratios = [middle(ages["headrace"]) / middle(ages["by hand"]) for ages in (silver, gold)]
    cores = {name: middle([window.cores for window in own]) for name, own in windows.items()}
    state = f", {ground.state:,} keys in bronze's state, in RocksDB" if ground.state else ""
    told = ", ".join(f"{minutes:g}" for minutes in dict.fromkeys(lengths))
    return Section(
        f"fresh: three steps at 100 rows a second, windows of {told} minutes{state}",
        [
            Figure("headrace / by hand, median age in silver", ratios[0], "at most", 0.6),
            Figure("headrace / by hand, median age in gold's state", ratios[1], "at most", 0.6),
            Figure("headrace / by hand, cores used", cores["headrace"] / cores["by hand"]),
        ],
        [
            *(
                f"{name:<9} silver {middle(silver[name]):.2f} s (95 %: {quantile(silver[name], 0.95):.2f}), "
                f"gold {middle(gold[name]):.2f} s (95 %: {quantile(gold[name], 0.95):.2f}), {cores[name]:.2f} cores"
                for name in windows
            ),
            *(f"{name:<9} {window.trend()}" for name, own in windows.items() for window in own),
        ],
        {"windows": {name: [window.__dict__ for window in own] for name, own in windows.items()}},
    )


def _window(ground: Ground, name: str, stock: Stock, warm: float, seconds: float) -> Window:
    data = ground.fresh("data")
    feed = stock.lay_out(data)
    attempt = _attempt(ground, name, data)
    with ExitStack() as stack:
        watch = Watch(attempt.tables / "silver_orders", attempt.checkpoint("gold_revenue"), stock.file_of)
        stack.enter_context(watch)
        log = attempt.directory / "log.txt"
        process = stack.enter_context(
            costs.running(attempt.command, directory=attempt.directory, environment=ground.environment, log=log)
        )

        def wait_for(file: int) -> None:
            def there() -> bool:
                if process.poll() is not None:
                    raise SystemExit(f"{name} ended by itself:\n{log.read_text()[-4000:]}")
                return file in watch.in_gold and file in watch.in_silver

            costs.until(there, within=PATIENCE, what=f"{name} has file {file} in silver and gold")

        feed.publish()
        wait_for(0)
        feed.begin()
        stack.callback(feed.end)
        time.sleep(warm)
        first, began = len(feed.published), time.monotonic()
        own, busy = _cpu(process.pid), costs.busy_seconds()
        while (left := began + seconds - time.monotonic()) > 0:
            since = len(feed.published)
            time.sleep(min(left, SPAN))
            come = [watch.in_silver[file] - feed.published[file] for file in list(watch.in_silver) if file >= since]
            costs.say(f"  {len(come)} files since the last word, in silver after {middle(come or [0.0]):.2f} s")
        last, lasted = len(feed.published) - 1, time.monotonic() - began
        own, busy = _cpu(process.pid) - own, costs.busy_seconds() - busy
        wait_for(last)
        feed.end()
    files = range(first, last + 1)
    silver = [watch.in_silver[file] - feed.published[file] for file in files]
    gold = [watch.in_gold[file] - feed.published[file] for file in files]
    shutil.rmtree(attempt.directory)
    shutil.rmtree(data)
    return Window(silver, gold, own / lasted, max(0.0, busy - own) / lasted)


def _attempt(ground: Ground, name: str, data: Path) -> Attempt:
    chosen = ON_DISK if ground.state else {}
    if name == "headrace":
        return ground.headrace(ground.bundle("fresh", data, settings=chosen), "orders", "--follow")
    # The same collector and merging of small files as Headrace has, so that only the way of going round differs.
    chosen = {**chosen, **MERGING}
    settings = [f"--setting={key}={value}" for key, value in chosen.items()]
    return ground.by_hand(data, "--follow", "--java-options=-XX:+UseParallelGC", *settings)


def _cpu(pid: int) -> float:
    return sum(process.cpu for process in costs.descendants(pid))
