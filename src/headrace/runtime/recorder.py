"""Record the batch reports of Spark as events: one JSON line each, and a call of the function that watches the run."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Step, local_path
from headrace.io.delta.commit_log import CommitLog
from headrace.io.delta.delta_table import table_of
from headrace.io.sinks.batch_writer import BatchCounts
from headrace.io.sinks.quarantine import quarantine_table
from headrace.io.watermarks import EVENT_TIME_METRICS
from headrace.liveness import acquire, release
from headrace.runtime.events import LOG_ROTATED, RUN_ENDED, Event, alive_file
from headrace.runtime.lag import Lag, source_lags, total_lag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROTATE_AT_BYTES = 16 << 20  # then the file is renamed, and the one renamed before is deleted
END_LIMIT_S = 10.0  # for Spark to report a query's end, once it has ended
NO_TIME = "1970-01-01T00:00:00.000Z"  # how Spark reports that there is no watermark yet, or no event time in a row
GROUPING_OPERATORS = ("stateStoreSave", "sessionWindowStateStoreSave")  # they count groups, not rows, as late


@dataclass
class RecordedStep:
    """What the recorder needs to know of a step to record its batches."""

    name: str
    checkpoint: str
    watermarked: tuple[str, ...]  # the inputs with a watermark
    logs: dict[str, CommitLog] = field(default_factory=dict)  # of the tables on this machine's disk

    @classmethod
    def of(cls, step: Step, environment: Environment, checkpoint: str) -> RecordedStep:
        """Return the record of a step that is about to start."""
        tables = [table_of(environment, name) for name in step.tables_written]
        tables += filter(None, [quarantine_table(step, environment)])
        paths = {table.name: local_path(table.location) for table in tables if table.by_path}
        watermarked = tuple(name for name, read in step.reads.items() if read.watermark)
        logs = {name: CommitLog(Path(path)) for name, path in paths.items() if path}
        return cls(step.name, checkpoint, watermarked, logs)


class Recorder:
    """Records the events of one run."""

    def __init__(self, file: Path, pipeline: str, watch: Callable[[Event], None], *, release: str = "") -> None:
        self._file, self._pipeline, self._watch, self._release = file, pipeline, watch, release
        self._run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        self._steps: dict[str, RecordedStep] = {}
        self._counts: dict[tuple[str, int], BatchCounts] = {}
        self._ended: dict[str, threading.Event] = {}
        self._rows: Counter[str] = Counter()
        self._state_rows: Counter[str] = Counter()
        self._idle: set[str] = set()
        self._repeated_after_rotation: dict[str, list[Event]] = {}
        self._writing = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        # A process that was killed may have left an unfinished line.
        self._is_line_open = file.exists() and not file.read_bytes().endswith(b"\n")

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

    def add_query(self, query_name: str, step: RecordedStep) -> None:
        """Record reports of queries of this name as batches of the step."""
        self._steps.setdefault(query_name, step)  # each start of a step adds it again; its commit logs are kept

    def on_counts(self, step: str) -> Callable[[int, BatchCounts], None]:
        """Return the function that takes the counts of the step's batches."""
        return lambda batch, counts: self._counts.__setitem__((step, batch), counts)

    def record(self, what: str, step: str = "", message: str = "") -> None:
        """Record the start, end, failure or warning of the run or a step."""
        event = self._event(what, step=step, message=message)
        alive = alive_file(self._file.parents[1], self._pipeline, self._run)
        if what == "run started":
            acquire(alive)
        self._emit(event)
        if what in RUN_ENDED:
            release(alive)
        self._repeated_after_rotation.setdefault(step, []).append(event)

    def record_batch(self, report: dict[str, Any]) -> None:
        """Record one batch report of Spark."""
        step = self._steps.get(report["name"])
        if step is None:
            return
        self._rows[report["runId"]] += report["numInputRows"]
        counts = self._counts.pop((step.name, report["batchId"]), BatchCounts())
        event = self._event("batch", **_batch_fields(report, step, counts))
        self._state_rows[step.name] = event.state_rows
        has_moved = any(source["startOffset"] != source["endOffset"] for source in report["sources"])
        if event.rows or has_moved:  # a file may be empty
            self._idle.discard(report["runId"])
        else:
            self._idle.add(report["runId"])
        self._emit(event)
        self._repeated_after_rotation[step.name] = [event]

    def record_end(self, run_id: str) -> None:
        """Remember that Spark has reported the end of a query."""
        self._ended.setdefault(run_id, threading.Event()).set()

    def wait_for_end(self, run_id: str) -> int:
        """Wait until all reports of an ended query are recorded. Return how many rows it read."""
        self._ended.setdefault(run_id, threading.Event()).wait(timeout=END_LIMIT_S)
        del self._ended[run_id]  # the follow loop starts a hundred thousand queries a day
        self._idle.discard(run_id)
        return self._rows.pop(run_id, 0)

    def state_rows(self, step: str) -> int:
        """Return how many rows the step's state had after its last batch."""
        return self._state_rows[step]

    def is_idle(self, run_id: str) -> bool:
        """Return whether the query's last batch had no rows."""
        return run_id in self._idle

    def _event(self, what: str, *, at: str = "", **values: Any) -> Event:
        at = at or datetime.now(UTC).isoformat(timespec="milliseconds")
        return Event(what, at, self._pipeline, self._run, os.getpid(), release=self._release, **values)

    def _emit(self, event: Event) -> None:
        with self._writing:
            written = [event]
            if self._file.exists() and self._file.stat().st_size > ROTATE_AT_BYTES:
                self._file.replace(self._file.with_suffix(".1.jsonl"))
                repeated = chain(*self._repeated_after_rotation.values())
                written = [self._event(LOG_ROTATED), *repeated, event]
            with self._file.open("a") as lines:
                if self._is_line_open:
                    lines.write("\n")
                    self._is_line_open = False
                lines.writelines(json.dumps(asdict(each)) + "\n" for each in written)
        self._watch(event)


def _batch_fields(report: dict[str, Any], step: RecordedStep, counts: BatchCounts) -> dict[str, Any]:
    operators = report["stateOperators"]
    # If the plan ran twice for one batch, Spark has counted its rows twice; those of a query with state, which are read
    # from the shuffle the second time, only in the state (4.2.0).
    input_passes = 1 if operators else counts.plan_runs

    def state_total(number: Callable[[dict[str, Any]], int], among: Iterable[Any] = operators) -> int:
        return sum(number(operator) for operator in among) // counts.plan_runs

    late = [operator for operator in operators if operator["numRowsDroppedByWatermark"]]
    are_groups = any(operator.get("operatorName", "").startswith(GROUPING_OPERATORS) for operator in late)
    watermark = report.get("eventTime", {}).get("watermark")
    lags = source_lags(report["sources"], step.checkpoint)
    return {
        "at": report["timestamp"],
        "step": step.name,
        "query": report.get("id", ""),
        "query_run": report.get("runId", ""),
        "batch": report["batchId"],
        "milliseconds": report.get("batchDuration", 0),
        "phases": report.get("durationMs", {}),
        "rows": report["numInputRows"] // input_passes,
        "rows_per_second": round((report.get("processedRowsPerSecond") or 0.0) / input_passes, 1),
        "sources": tuple(_source(*pair, input_passes) for pair in zip(report["sources"], lags, strict=True)),
        "lag": total_lag(lags),
        "watermark": None if watermark == NO_TIME else watermark,
        "event_time": _event_times(report, step),
        "late": state_total(lambda operator: operator["numRowsDroppedByWatermark"], late),
        "late_unit": ("groups" if are_groups else "rows") if late else "",
        "duplicates": state_total(lambda op: op.get("customMetrics", {}).get("numDroppedDuplicateRows", 0)),
        "quarantined": counts.quarantined,
        "dropped": counts.dropped,
        "warned": counts.warned,
        "state_rows": state_total(lambda operator: operator["numRowsTotal"]),
        "state_rows_removed": state_total(lambda operator: operator.get("numRowsRemoved", 0)),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "tables": _tables_written(report, step),
    }


def _source(source: Mapping[str, Any], lag: Lag | None, passes: int) -> dict[str, Any]:
    described = {
        "name": source.get("description", ""),
        "rows": source.get("numInputRows", 0) // passes,
        "start": source.get("startOffset"),
        "end": source.get("endOffset"),
    }
    return described if lag is None else {**described, "lag": lag[0], "lag_unit": lag[1]}


def _event_times(report: Mapping[str, Any], step: RecordedStep) -> dict[str, dict[str, str]]:
    """Return the oldest and newest event time of each input with a watermark, as far as they are known.

    With several of them, Spark's own `eventTime` shows one (4.2.0); then metrics of our own are observed. With one, the
    oldest is unknown if a row has no event time, as no bad row has: Spark counts it as 1970 (4.2.0).
    """
    if len(step.watermarked) == 1:
        own = report.get("eventTime", {})
        times = {step.watermarked[0]: {"oldest": own.get("min"), "newest": own.get("max")}}
    else:
        metrics = report.get("observedMetrics", {})
        times = {name: metrics.get(EVENT_TIME_METRICS + name, {}) for name in step.watermarked}
    known = {name: {key: at for key, at in ends.items() if at and at != NO_TIME} for name, ends in times.items()}
    return {name: ends for name, ends in known.items() if ends}


def _tables_written(report: Mapping[str, Any], step: RecordedStep) -> dict[str, dict[str, int]]:
    commits = {name: log.find(report.get("id", ""), report["batchId"]) for name, log in step.logs.items()}
    return {name: asdict(commit) for name, commit in commits.items() if commit is not None}


class _Listener:
    """Spark's listener interface, with the report of a batch as one JSON text.

    pyspark's own class reads the report field by field: 7 % of the CPU time of a run with 20 small batches (4.2.0).
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._recorder.record_batch(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._recorder.record_end(event.runId().toString())

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
