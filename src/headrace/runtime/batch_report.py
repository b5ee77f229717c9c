"""Compute the fields of a batch's event from Spark's report, the batch writer's counts and the tables' commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

NO_TIME = "1970-01-01T00:00:00.000Z"  # Spark reports it if there is no watermark yet, or if a row has no event time
GROUPING_OPERATORS = ("stateStoreSave", "sessionWindowStateStoreSave")  # these count late groups, not late rows


@dataclass
class RecordedStep:
    """A step whose batches are recorded, with what their events need in addition to Spark's reports."""

    name: str
    checkpoint: str  # Spark's checkpoint directory
    watermarked: tuple[str, ...]  # the names of the inputs with a watermark
    logs: dict[str, CommitLog] = field(default_factory=dict)  # by table name; only tables on this machine's disk

    @classmethod
    def of(cls, step: Step, environment: Environment, checkpoint: str) -> RecordedStep:
        """Return the RecordedStep for a step that is about to start. `checkpoint` is Spark's checkpoint directory."""
        tables = [table_of(environment, name) for name in step.tables_written]
        tables += filter(None, [quarantine_table(step, environment)])
        paths = {table.name: local_path(table.location) for table in tables if table.by_path}
        watermarked = tuple(name for name, read in step.reads.items() if read.watermark)
        logs = {name: CommitLog(Path(path)) for name, path in paths.items() if path}
        return cls(step.name, checkpoint, watermarked, logs)


def batch_fields(report: dict[str, Any], step: RecordedStep, counts: BatchCounts) -> dict[str, Any]:
    """Return the fields of a batch's event, except those that all events of a run share.

    `report` is Spark's report of the batch, `counts` is from the batch writer.
    """
    operators = report["stateOperators"]
    # If the batch writer ran the plan of a batch twice, Spark has counted rows twice (4.2.0). A query with state reads
    # its input only once, because the second time it starts from the shuffle files: then only the counts of the state
    # operators are doubled.
    input_passes = 1 if operators else counts.plan_runs

    def state_total(metric: Callable[[dict[str, Any]], int]) -> int:
        """Return the sum of a metric over all state operators, corrected for a plan that ran several times."""
        return sum(metric(operator) for operator in operators) // counts.plan_runs

    with_late_rows = [operator for operator in operators if operator["numRowsDroppedByWatermark"]]
    counts_groups = any(operator.get("operatorName", "").startswith(GROUPING_OPERATORS) for operator in with_late_rows)
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
        "sources": tuple(
            _source(source, lag, input_passes) for source, lag in zip(report["sources"], lags, strict=True)
        ),
        "lag": total_lag(lags),
        "watermark": None if watermark == NO_TIME else watermark,
        "event_time": _event_times(report, step),
        "late": state_total(lambda operator: operator["numRowsDroppedByWatermark"]),
        "late_unit": ("groups" if counts_groups else "rows") if with_late_rows else "",
        "duplicates": state_total(lambda operator: operator.get("customMetrics", {}).get("numDroppedDuplicateRows", 0)),
        "quarantined": counts.quarantined,
        "dropped": counts.dropped,
        "warned": counts.warned,
        "state_rows": state_total(lambda operator: operator["numRowsTotal"]),
        "state_rows_removed": state_total(lambda operator: operator.get("numRowsRemoved", 0)),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "tables": _tables_written(report, step),
    }


def _source(source: Mapping[str, Any], lag: Lag | None, input_passes: int) -> dict[str, Any]:
    """Return what an event contains about one source. Omit the lag if it is unknown."""
    fields = {
        "name": source.get("description", ""),
        "rows": source.get("numInputRows", 0) // input_passes,
        "start": source.get("startOffset"),
        "end": source.get("endOffset"),
    }
    return fields if lag is None else {**fields, "lag": lag.amount, "lag_unit": lag.unit}


def _event_times(report: Mapping[str, Any], step: RecordedStep) -> dict[str, dict[str, str]]:
    """Return the oldest and newest event time of each input with a watermark. Omit unknown times.

    For a query with one watermark, the times are Spark's own `eventTime`. Spark takes a missing event time for 1970
    (4.2.0). Bad rows have no event time, so the oldest time is unknown if the batch has a bad row.
    For a query with several watermarks, `eventTime` covers only one input (4.2.0), so the times are metrics of
    `observe_event_times`.
    """
    if len(step.watermarked) == 1:
        spark_times = report.get("eventTime", {})
        times = {step.watermarked[0]: {"oldest": spark_times.get("min"), "newest": spark_times.get("max")}}
    else:
        metrics = report.get("observedMetrics", {})
        times = {name: metrics.get(EVENT_TIME_METRICS + name, {}) for name in step.watermarked}
    known: dict[str, dict[str, str]] = {}
    for name, ends in times.items():
        known_ends = {end: time for end, time in ends.items() if time and time != NO_TIME}
        if known_ends:
            known[name] = known_ends
    return known


def _tables_written(report: Mapping[str, Any], step: RecordedStep) -> dict[str, dict[str, int]]:
    """Return the commit of this batch to each table, by table name.

    Omit tables that the batch has not written, and tables that are not on this machine's disk.
    """
    commits = {name: log.find(report.get("id", ""), report["batchId"]) for name, log in step.logs.items()}
    return {name: asdict(commit) for name, commit in commits.items() if commit is not None}
