"""The fields of a batch's event, from Spark's report, the batch writer's counts and the commits of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace.config.models import Environment, Step, local_path
from headrace.io.delta.commit_log import CommitLog
from headrace.io.delta.delta_table import table_of
from headrace.io.sinks.batch_writer import BatchCounts
from headrace.io.sinks.quarantine import quarantine_table
from headrace.io.watermarks import EVENT_TIME_METRICS
from headrace.runtime.lag import Lag, source_lags, total_lag

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


def batch_fields(report: dict[str, Any], step: RecordedStep, counts: BatchCounts) -> dict[str, Any]:
    """Return the fields of the event of a batch that depend on the batch."""
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
