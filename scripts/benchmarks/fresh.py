"""Measure the age of rows on arrival in silver and in gold's state: Headrace and the baseline, both continuous."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from statistics import median

import process_cost
from arrival_times import ArrivalRecorder
from feed import FeedData
from figures import Figure, Section, quantile
from sandbox import Command, Sandbox

NAMES = {"A": "headrace", "B": "baseline"}
ROCKSDB = {  # the usual choice for a large state
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
AUTO_COMPACT = {"spark.databricks.delta.autoCompact.enabled": "true"}
PROGRESS_INTERVAL_S = 300.0
WARM_UP_S = 60.0  # between the start of the feed and the start of the window
TRIAL_WARM_UP_S = 10.0
TIMEOUT_S = 900.0  # for the arrival of one file


@dataclass(frozen=True)
class Window:
    """The measurements of one window."""

    silver: list[float]  # for each file in order: its age in seconds when it arrived in silver
    gold: list[float]  # likewise, in gold's state
    cores: float  # average number of cores that the pipeline used
    other_cores: float  # average number of cores that other processes used

    def trend(self) -> str:
        """Return the median ages in silver and gold, in the first and in the last third of the window, as text."""
        third = max(1, len(self.silver) // 3)
        return (
            f"first third {median(self.silver[:third]):.1f} and {median(self.gold[:third]):.1f} s, "
            f"last third {median(self.silver[-third:]):.1f} and {median(self.gold[-third:]):.1f} s"
        )


def measure(sandbox: Sandbox) -> Section:
    """Measure one window for each letter of `order`, each with a new session, so that all sessions are equally old."""
    sandbox.warm_up()
    warm_up_s = TRIAL_WARM_UP_S if sandbox.is_trial else WARM_UP_S
    lengths = list(islice(chain(sandbox.minutes, repeat(sandbox.minutes[-1])), len(sandbox.order)))  # in minutes
    files = int(warm_up_s + 60 * max(lengths) + TIMEOUT_S)  # one file per second
    data = FeedData.make(sandbox.home / "samples" / "feed", files=files, state_keys=sandbox.state_keys)
    windows: dict[str, list[Window]] = {name: [] for name in NAMES.values()}
    for number, (letter, minutes) in enumerate(zip(sandbox.order, lengths, strict=True), 1):
        name = NAMES[letter]
        process_cost.print_progress(f"fresh: {name}, window {number} of {len(sandbox.order)}, {minutes:g} minutes …")
        window = _measure_window(sandbox, name, data, warm_up_s=warm_up_s, window_s=60 * minutes)
        windows[name].append(window)
        process_cost.print_progress(
            f"  {name}: in silver after {median(window.silver):.2f} s, in gold after {median(window.gold):.2f} s; "
            f"{window.trend()}; {window.cores:.2f} cores, other processes {window.other_cores:.2f}"
        )
    silver = {name: [age for window in runs for age in window.silver] for name, runs in windows.items()}
    gold = {name: [age for window in runs for age in window.gold] for name, runs in windows.items()}
    ratios = [median(ages["headrace"]) / median(ages["baseline"]) for ages in (silver, gold)]
    cores = {name: median([window.cores for window in runs]) for name, runs in windows.items()}
    state = f", {sandbox.state_keys:,} keys in bronze's state, in RocksDB" if sandbox.state_keys else ""
    window_lengths = ", ".join(f"{minutes:g}" for minutes in dict.fromkeys(lengths))
    return Section(
        f"fresh: three steps at 100 rows a second, windows of {window_lengths} minutes{state}",
        [
            Figure("headrace / baseline, median age in silver", ratios[0], "at most", 0.6),
            Figure("headrace / baseline, median age in gold's state", ratios[1], "at most", 0.6),
            Figure("headrace / baseline, cores used", cores["headrace"] / cores["baseline"]),
        ],
        [
            *(
                f"{name:<9} silver {median(silver[name]):.2f} s (95 %: {quantile(silver[name], 0.95):.2f}), "
                f"gold {median(gold[name]):.2f} s (95 %: {quantile(gold[name], 0.95):.2f}), {cores[name]:.2f} cores"
                for name in windows
            ),
            *(f"{name:<9} {window.trend()}" for name, runs in windows.items() for window in runs),
        ],
        {"windows": {name: [window.__dict__ for window in runs] for name, runs in windows.items()}},
    )


def _measure_window(sandbox: Sandbox, name: str, feed_data: FeedData, *, warm_up_s: float, window_s: float) -> Window:
    """Run one contender with a new feed, and measure the files that are published after the warm-up."""
    data = sandbox.new_directory("data")
    feed = feed_data.prepare(data)
    command = _command(sandbox, name, data)
    with ExitStack() as stack:
        arrivals = ArrivalRecorder(
            command.tables / "silver_orders", command.checkpoint("gold_revenue"), feed_data.file_of
        )
        stack.enter_context(arrivals)
        log = command.directory / "log.txt"
        process = stack.enter_context(
            process_cost.running(
                command.arguments, directory=command.directory, environment=sandbox.environment, log=log
            )
        )

        def wait_for(file: int) -> None:
            def has_arrived() -> bool:
                if process.poll() is not None:
                    raise SystemExit(f"{name} exited:\n{log.read_text()[-4000:]}")
                return file in arrivals.in_gold and file in arrivals.in_silver

            what = f"{name} to have file {file} in silver and gold"
            process_cost.wait_until(has_arrived, timeout=TIMEOUT_S, what=what)

        feed.publish()
        wait_for(0)
        feed.start()
        stack.callback(feed.stop)
        time.sleep(warm_up_s)
        first, started_at = len(feed.published), time.monotonic()
        cpu_before_s, busy_before_s = _cpu_seconds(process.pid), process_cost.busy_seconds()
        while (remaining_s := started_at + window_s - time.monotonic()) > 0:
            first_new = len(feed.published)
            time.sleep(min(remaining_s, PROGRESS_INTERVAL_S))
            new_files = [file for file in list(arrivals.in_silver) if file >= first_new]
            ages = [arrivals.in_silver[file] - feed.published[file] for file in new_files]
            process_cost.print_progress(f"  {len(ages)} more files, in silver after {median(ages or [0.0]):.2f} s")
        last, duration_s = len(feed.published) - 1, time.monotonic() - started_at
        cpu_s = _cpu_seconds(process.pid) - cpu_before_s
        other_cpu_s = max(0.0, process_cost.busy_seconds() - busy_before_s - cpu_s)
        wait_for(last)
        feed.stop()
    files = range(first, last + 1)
    silver = [arrivals.in_silver[file] - feed.published[file] for file in files]
    gold = [arrivals.in_gold[file] - feed.published[file] for file in files]
    shutil.rmtree(command.directory)
    shutil.rmtree(data)
    return Window(silver, gold, cpu_s / duration_s, other_cpu_s / duration_s)


def _command(sandbox: Sandbox, name: str, data: Path) -> Command:
    """Return the command that runs a contender continuously."""
    spark_settings = ROCKSDB if sandbox.state_keys else {}
    if name == "headrace":
        return sandbox.headrace(sandbox.bundle("fresh", data, settings=spark_settings), "orders", "--follow")
    # The baseline gets the same garbage collector and compaction as Headrace, so that only the scheduling of batches
    # differs.
    spark_settings = {**spark_settings, **AUTO_COMPACT}
    settings = [f"--setting={key}={value}" for key, value in spark_settings.items()]
    return sandbox.baseline(data, "--follow", "--java-options=-XX:+UseParallelGC", *settings)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants."""
    return sum(process.cpu_s for process in process_cost.descendants(pid))
