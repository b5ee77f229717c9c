"""Record Spark's batch reports as events: one JSON line each, and a call for whoever listens."""

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

from headrace.io.sinks.batch_writer import BatchCounts
from headrace.liveness import acquire, release
from headrace.runtime.events import LOG_ROTATED, RUN_ENDED, Event, alive_file
from headrace.runtime.lag import total_lag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROTATE_AT = 16 << 20  # then the file is set aside, and the one set aside before goes


NO_WATERMARK = "1970-01-01T00:00:00.000Z"  # as Spark reports one that is still to come


class Recorder:
    """Collects the events of one run."""

    def __init__(self, file: Path, pipeline: str, watch: Callable[[Event], None]) -> None:
        self._file, self._pipeline, self._watch = file, pipeline, watch
        self._run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        self._steps: dict[str, str] = {}
        self._checkpoints: dict[str, str] = {}
        self._counts: dict[tuple[str, int], BatchCounts] = {}
        self._ended: dict[str, threading.Event] = {}
        self._rows: Counter[str] = Counter()
        self._state_rows: Counter[str] = Counter()
        self._idle: set[str] = set()
        self._to_repeat: dict[str, list[Event]] = {}
        self._writing = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        self._cut_off = file.exists() and not file.read_bytes().endswith(b"\n")  # by the death of the process before

    def listen(self, spark: SparkSession) -> Callable[[], None]:
        """Starts listening to the session's queries; returns what ends it."""
        from pyspark.java_gateway import ensure_callback_server_started

        context: Any = spark.sparkContext
        ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
        wrapper = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"
        listener = getattr(context._jvm, wrapper)(_Listener(self))
        streams: Any = spark.streams
        streams._jsqm.addListener(listener)
        return lambda: streams._jsqm.removeListener(listener)

    def expect(self, query_name: str, step: str, checkpoint: str) -> None:
        """Says which step a query of that name belongs to, and where its checkpoint lies."""
        self._steps[query_name] = step
        self._checkpoints[step] = checkpoint

    def note(self, step: str) -> Callable[[int, BatchCounts], None]:
        """What the step's batch writer tells of a batch."""
        return lambda batch, counts: self._counts.__setitem__((step, batch), counts)

    def say(self, what: str, step: str = "", message: str = "") -> None:
        """Records the begin or end of the run or of a step."""
        event = Event(what, _now(), self._pipeline, self._run, os.getpid(), step, message=message)
        alive = alive_file(self._file.parents[1], self._pipeline, self._run)
        if what == "run started":
            acquire(alive)
        self._emit(event)
        if what in RUN_ENDED:
            release(alive)
        self._to_repeat.setdefault(step, []).append(event)

    def wait(self, run_id: str) -> int:
        """Waits until all that the query reported has been recorded; how many rows it has read."""
        self._ended.setdefault(run_id, threading.Event()).wait(timeout=10)
        del self._ended[run_id]  # in rounds there are a hundred thousand queries a day
        self._idle.discard(run_id)
        return self._rows.pop(run_id, 0)

    def state_rows(self, step: str) -> int:
        """How many rows the step's state held after its last batch."""
        return self._state_rows[step]

    def is_idle(self, run_id: str) -> bool:
        """Whether the query's last batch had no rows."""
        return run_id in self._idle

    def batch(self, report: dict[str, Any]) -> None:
        """Records one report of Spark's."""
        step = self._steps.get(report["name"])
        if step is not None:
            self._rows[report["runId"]] += report["numInputRows"]
            counts = self._counts.pop((step, report["batchId"]), BatchCounts())
            event = _batch_event(
                report, step, counts, self._pipeline, self._run, total_lag(report["sources"], self._checkpoints[step])
            )
            self._state_rows[step] = event.state_rows
            moved = any(source["startOffset"] != source["endOffset"] for source in report["sources"])
            (self._idle.discard if event.rows or moved else self._idle.add)(report["runId"])  # a file may be empty
            self._emit(event)
            self._to_repeat[step] = [event]

    def ended(self, run_id: str) -> None:
        """Notes that Spark has reported a query's end."""
        self._ended.setdefault(run_id, threading.Event()).set()

    def _emit(self, event: Event) -> None:
        with self._writing:
            told = [event]
            if self._file.exists() and self._file.stat().st_size > ROTATE_AT:
                self._file.replace(self._file.with_suffix(".1.jsonl"))
                aside = Event(LOG_ROTATED, _now(), self._pipeline, self._run, os.getpid())
                told = [aside, *chain(*self._to_repeat.values()), event]
            with self._file.open("a") as lines:
                if self._cut_off:
                    lines.write("\n")
                    self._cut_off = False
                lines.writelines(json.dumps(asdict(one)) + "\n" for one in told)
        self._watch(event)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _batch_event(
    report: dict[str, Any], step: str, counts: BatchCounts, pipeline: str, run: str, lag: int | None
) -> Event:
    operators = report["stateOperators"]
    watermark = report.get("eventTime", {}).get("watermark")
    # A plan that ran twice for one batch has read its rows twice, or with state, which it takes up after the shuffle,
    # counted everything in the state twice (Spark 4.2.0).
    readings = 1 if operators else counts.passes

    def of_state(number: Callable[[dict[str, Any]], int]) -> int:
        return sum(number(operator) for operator in operators) // counts.passes

    return Event(
        "batch",
        report["timestamp"],
        pipeline,
        run,
        os.getpid(),
        step,
        batch=report["batchId"],
        rows=report["numInputRows"] // readings,
        rows_per_second=round((report.get("processedRowsPerSecond") or 0.0) / readings, 1),
        milliseconds=report.get("batchDuration", 0),
        behind=lag,
        watermark=None if watermark == NO_WATERMARK else watermark,
        state_rows=of_state(lambda operator: operator["numRowsTotal"]),
        late=of_state(lambda operator: operator["numRowsDroppedByWatermark"]),
        duplicates=of_state(lambda operator: operator.get("customMetrics", {}).get("numDroppedDuplicateRows", 0)),
        refused=counts.refused,
        dropped=counts.dropped,
        warned=counts.warned,
    )


class _Listener:
    """Spark's listener interface. pyspark's own class looks each report up field by field, which took 7 % of a run's
    CPU seconds with 20 small batches (4.2.0); one call gets all of it as JSON."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._recorder.batch(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._recorder.ended(event.runId().toString())

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
