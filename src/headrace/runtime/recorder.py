"""Record the events of a run: append each to a file as a JSON line, and pass it to the function that watches the run.

The event of a batch is made from Spark's report, which a streaming query listener receives.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import liveness
from headrace.io.sinks.batch_writer import BatchCounts
from headrace.runtime.batch_report import RecordedStep, batch_fields
from headrace.runtime.events import LOG_ROTATED, RUN_ENDED, Event, alive_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROTATE_AT_BYTES = 16 << 20  # a file of this size is renamed to `.1.jsonl`, which replaces the previously renamed file
END_LIMIT_S = 10.0  # how long to wait for Spark's report that a query has ended


class Recorder:
    """Records the events of one run in `file`, and calls `watch` with each."""

    def __init__(self, file: Path, pipeline: str, watch: Callable[[Event], None], *, release: str = "") -> None:
        self._file, self._pipeline, self.release = file, pipeline, release
        self._watchers, self._idle_watchers = [watch], list[Callable[[str], None]]()
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}"
        self._steps: dict[str, RecordedStep] = {}  # by query name
        self._unbounded: dict[str, str] = {}  # step by run id, of queries that do not end by themselves
        self._counts: dict[tuple[str, int], BatchCounts] = {}  # by step and batch
        self._ended: dict[str, threading.Event] = {}  # by run id of a query: set when Spark has reported its end
        self._rows: Counter[str] = Counter()  # by run id: rows read
        self._idle: set[str] = set()  # run ids of the queries whose last batch read nothing
        self._state_rows: Counter[str] = Counter()  # by step
        self._repeated_after_rotation: dict[str, list[Event]] = {}  # by step; the events of the run have the key ""
        self._write_lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        # A process that was killed may have left an unfinished line.
        self._has_unfinished_line = file.exists() and not file.read_bytes().endswith(b"\n")

    def listen(self, spark: SparkSession) -> Callable[[], None]:
        """Start listening to the session's queries. Return the function that stops listening."""
        from pyspark.java_gateway import ensure_callback_server_started

        context: Any = spark.sparkContext
        ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
        wrapper = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"
        listener = getattr(context._jvm, wrapper)(_Listener(self))
        streams: Any = spark.streams
        streams._jsqm.addListener(listener)
        return lambda: streams._jsqm.removeListener(listener)

    def add_watcher(self, watch: Callable[[Event], None], watch_idle: Callable[[str], None]) -> None:
        """Call `watch` with each event, and `watch_idle` with the name of each step that finds nothing to read."""
        self._watchers.append(watch)
        self._idle_watchers.append(watch_idle)

    def add_query(self, query_name: str, step: RecordedStep) -> None:
        """Record the batch reports of queries with this name as batches of the step."""
        # Each start of a step adds its query again. Keep the first entry: its commit logs know their last positions.
        self._steps.setdefault(query_name, step)

    def add_unbounded_query(self, run_id: str, step: str) -> None:
        """Let `record_idle_query` know the step of a query that has been started."""
        self._unbounded[run_id] = step

    def on_counts(self, step: str) -> Callable[[int, BatchCounts], None]:
        """Return the function that the step's batch writer calls with the counts of each batch."""

        def add_counts(batch: int, counts: BatchCounts) -> None:
            self._counts[step, batch] = counts

        return add_counts

    def record(self, what: str, step: str = "", message: str = "") -> None:
        """Record the start, end, failure or warning of a step, or of the run if `step` is empty."""
        event = self._event(what, step=step, message=message)
        alive = alive_file(self._file.parents[1], self._pipeline, self.run)
        if what == "run started":
            liveness.acquire(alive)
        self._emit(event)
        if what in RUN_ENDED:
            liveness.release(alive)
        self._repeated_after_rotation.setdefault(step, []).append(event)

    def record_batch(self, report: dict[str, Any]) -> None:
        """Record one batch report of Spark. Ignore reports of queries that were not added."""
        step = self._steps.get(report["name"])
        if step is None:
            return
        self._rows[report["runId"]] += report["numInputRows"]
        counts = self._counts.pop((step.name, report["batchId"]), BatchCounts())
        event = self._event("batch", **batch_fields(report, step, counts))
        self._state_rows[step.name] = event.state_rows
        has_moved = any(source["startOffset"] != source["endOffset"] for source in report["sources"])
        if event.rows or has_moved:  # a batch without rows has moved if it read an empty file
            self._idle.discard(report["runId"])
        else:
            self._idle.add(report["runId"])
        self._emit(event)
        self._repeated_after_rotation[step.name] = [event]

    def record_idle_query(self, run_id: str) -> None:
        """Note that a query has found nothing to read; ignore queries that were not added."""
        if run_id in self._unbounded:
            self.record_idle(self._unbounded[run_id])

    def record_idle(self, step: str) -> None:
        """Note that a step has found nothing to read. This is no event."""
        for watch in self._idle_watchers:
            watch(step)

    def record_end(self, run_id: str) -> None:
        """Let `wait_for_end` return: Spark has reported the end of this run of a query."""
        self._ended.setdefault(run_id, threading.Event()).set()

    def wait_for_end(self, run_id: str) -> int:
        """Wait until all reports of an ended query are recorded, and forget the query. Return how many rows it read.

        Wait at most END_LIMIT_S; then the reports that are missing do not count.
        """
        self._ended.setdefault(run_id, threading.Event()).wait(timeout=END_LIMIT_S)
        # The follow loop starts a hundred thousand queries a day; keeping their entries would fill the memory.
        del self._ended[run_id]
        self._idle.discard(run_id)
        self._unbounded.pop(run_id, None)
        return self._rows.pop(run_id, 0)

    def state_rows(self, step: str) -> int:
        """Return how many rows the step's state had after its last batch."""
        return self._state_rows[step]

    def is_idle(self, run_id: str) -> bool:
        """Return whether the query's last batch read nothing; false if the query has had no batch."""
        return run_id in self._idle

    def _event(self, what: str, *, at: str = "", **values: Any) -> Event:
        at = at or datetime.now(UTC).isoformat(timespec="milliseconds")
        return Event(what, at, self._pipeline, self.run, os.getpid(), release=self.release, **values)

    def _emit(self, event: Event) -> None:
        """Append the event to the file, and pass it to `watch`. If the file is too large, rotate it first."""
        with self._write_lock:
            written = [event]
            if self._file.exists() and self._file.stat().st_size > ROTATE_AT_BYTES:
                self._file.replace(self._file.with_suffix(".1.jsonl"))
                repeated = chain(*self._repeated_after_rotation.values())
                written = [self._event(LOG_ROTATED), *repeated, event]
            with self._file.open("a") as lines:
                if self._has_unfinished_line:
                    lines.write("\n")
                    self._has_unfinished_line = False
                lines.writelines(json.dumps(asdict(each)) + "\n" for each in written)
        for watch in self._watchers:
            watch(event)


class _Listener:
    """Implements Spark's listener interface, and reads the report of a batch as one JSON text.

    pyspark's own class reads the report field by field, which takes 7 % of the CPU time of a run with 20 small batches
    (4.2.0).
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._recorder.record_batch(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        self._recorder.record_idle_query(event.runId().toString())

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._recorder.record_end(event.runId().toString())

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
