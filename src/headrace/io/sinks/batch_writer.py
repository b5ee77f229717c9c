"""Write a step's batches exactly once: several sinks, quarantined rows, replaced and merged tables.

Like Delta's own streaming sink, the batch writer adds the query's id and the batch's number to each write to a table.
If a batch is repeated after a crash, Delta skips the write to each table that already has the batch. Therefore each
table is written only once per batch. Tables are written before topics and the console, which cannot recognise a
repeated batch and get it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.config.kinds.sinks import SINKS
from headrace.config.models import Environment, Sink, Step
from headrace.expectations import verdict
from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks.quarantine import quarantine_table, quarantined_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

# What can happen to a row that fails a check.
OUTCOMES = ("quarantined", "dropped", "warned")
OBSERVATION_LIMIT_S = 10.0  # how long to wait for metrics, which arrive within milliseconds if the plan has run


@dataclass(frozen=True)
class BatchCounts:
    """How many rows of a batch failed each check, by outcome, and how often the batch's plan ran."""

    quarantined: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    plan_runs: int = 1


class Presence(Enum):
    """Whether the first table already has a batch that is to be written."""

    ABSENT = "absent"
    PRESENT = "present"
    UNKNOWN = "unknown"  # Delta's log cannot be read, as on Databricks


class CheckedRows(NamedTuple):
    """Rows with verdicts, and the observation that counts the rows that failed a check when the batch is written."""

    rows: DataFrame
    observation: Observation


class WrittenBatch(NamedTuple):
    """The result of writing a batch."""

    counts: BatchCounts
    plan_runs: int  # how often the plan ran if the batch was not persisted
    was_present: bool  # the first table had the batch already


class BatchWriter:
    """Writes the batches of one step. Spark calls it with each batch; `on_counts` is called with the batch's counts."""

    def __init__(
        self,
        step: Step,
        environment: Environment,
        *,
        transform: Callable[[DataFrame], DataFrame] | None,
        on_counts: Callable[[int, BatchCounts], None],
    ) -> None:
        self._step, self._environment = step, environment
        self._transform, self._on_counts = transform, on_counts
        self._sinks = sorted(step.writes, key=lambda sink: sink.kind != "table")
        # Whether it is certain that no table has the next batch. This is uncertain after a start: a table may have the
        # batch that a crash interrupted, or several batches if the checkpoint is older than the table.
        self._next_batch_is_new = False
        self._had_failed_rows = False  # in the previous batch: probably the next one is read twice, too

    def __call__(self, batch: DataFrame, number: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        transaction = TransactionId(str(query_id), number, is_new=self._next_batch_is_new)
        presence = self._presence_in_first_table(batch, transaction)
        self._next_batch_is_new = False  # until the batch is written
        persist = presence is not Presence.ABSENT or self._reads_batch_twice() or self._had_failed_rows
        with _persisted(batch, wanted=persist) as rows:
            written = self._write(rows, transaction, presence)
        self._next_batch_is_new = not written.was_present
        self._had_failed_rows = written.counts != BatchCounts()
        self._on_counts(number, written.counts if persist else replace(written.counts, plan_runs=written.plan_runs))

    def _reads_batch_twice(self) -> bool:
        """Return whether a merge or several sinks read each batch twice, so that the batch has to be persisted."""
        # A plan with state must not run twice for one batch.
        return len(self._sinks) > 1 or self._sinks[0].mode == "upsert"

    def _presence_in_first_table(self, batch: DataFrame, transaction: TransactionId) -> Presence:
        """Return whether the first sink is a table that has the batch already."""
        sink = self._sinks[0]
        if transaction.is_new or not sink.table:
            return Presence.ABSENT
        table = table_of(self._environment, sink.table)
        has_batch = table.has_batch(batch.sparkSession, transaction.application, transaction.batch)
        if has_batch is None:
            return Presence.UNKNOWN
        return Presence.PRESENT if has_batch else Presence.ABSENT

    def _write(self, batch: DataFrame, transaction: TransactionId, presence: Presence) -> WrittenBatch:
        """Write the batch to all sinks, and its quarantined rows to the quarantine table.

        Skip the first sink if its table has the batch. If the presence is unknown, do not skip it: if Delta skips the
        write, the plan does not run and no metrics arrive, which shows that the table had the batch.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        rows, checked = self._result_rows(batch)
        observations = [each.observation for each in checked]
        if presence is Presence.UNKNOWN and not observations:  # observe anything, to detect whether the plan runs
            observations = [Observation()]
            rows = rows.observe(observations[0], F.count(F.lit(None)).alias("failed"))
        first, *others = self._sinks
        # Only the first table, and its quarantine table, which is written later, are known to lack an absent batch.
        # Other tables may have it, if the step's sinks were changed after a crash.
        first_transaction = replace(transaction, is_new=presence is Presence.ABSENT)
        was_present = presence is Presence.PRESENT
        metrics: list[dict[str, Any] | None] = []
        if not was_present:
            self._write_sink(rows, first, first_transaction)
            deadline = time.monotonic() + OBSERVATION_LIMIT_S
            metrics = [_wait_for_metrics(observation, deadline) for observation in observations]
            was_present = None in metrics
        if was_present:
            # The plan must run nevertheless: otherwise the state store has no version for the batch to commit, and the
            # query fails (Spark 4.2.0). Counting the failed rows runs the plan.
            failed_counts = [frame.where(F.col(verdict.VERDICT).isNotNull()).count() for frame, _ in checked]
            if not checked:
                rows.write.format("noop").mode("overwrite").save()
        else:
            failed_counts = [values["failed"] for values in metrics[: len(checked)] if values is not None]
        for sink in others:
            self._write_sink(rows, sink, transaction)
        with_failed_rows = [frame for (frame, _), count in zip(checked, failed_counts, strict=True) if count]
        counts = BatchCounts()
        if with_failed_rows:
            counts = self._quarantine(with_failed_rows, first_transaction, was_present=was_present)
        return WrittenBatch(counts, plan_runs=1 + len(with_failed_rows), was_present=was_present)

    def _result_rows(self, batch: DataFrame) -> tuple[DataFrame, list[CheckedRows]]:
        """Apply the row-wise transform and the step's rules. Return the good rows, and all rows that were checked."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        checked: list[CheckedRows] = []

        def count_failed(frame: DataFrame) -> DataFrame:
            """Add the frame to `checked`, and count its failed rows when the batch is written."""
            if not verdict.has_verdict(frame):
                return frame
            observation = Observation()
            checked.append(CheckedRows(frame, observation))
            return frame.observe(observation, F.count(verdict.VERDICT).alias("failed"))

        rows = batch
        if self._transform is not None or self._step.expect:  # both apply to good rows only
            rows = _good_rows(count_failed(rows))
        if self._transform is not None:
            rows = self._transform(rows)
        if self._step.copies_changes and delta_merge.CHANGE_TYPE in rows.columns:
            rows = delta_merge.changed_rows(rows)
        rows = _good_rows(count_failed(verdict.check_result_rows(rows, self._step.expect)))
        return rows, checked

    def _write_sink(self, rows: DataFrame, sink: Sink, transaction: TransactionId) -> None:
        implementation = import_module(SINKS[sink.kind].implementation)
        implementation.write_batch(rows, sink, self._step, self._environment, transaction)

    def _quarantine(self, frames: list[DataFrame], transaction: TransactionId, *, was_present: bool) -> BatchCounts:
        """Write quarantined rows to the quarantine table, if the step writes tables. Return the counts per check."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        first, *others = [frame.where(F.col(verdict.VERDICT).isNotNull()).select(verdict.VERDICT) for frame in frames]
        verdicts = first
        for other in others:
            verdicts = verdicts.union(other)
        names = list(dict.fromkeys(verdict.check_names_of_step(self._step)))
        columns: list[Column] = [
            F.count_if(F.array_contains(f"{verdict.VERDICT}.{outcome}", name)).alias(f"{outcome}:{name}")
            for outcome in OUTCOMES
            for name in names
        ]
        table = quarantine_table(self._step, self._environment)
        counted: dict[str, Any] | None = None
        if table is not None:
            observation = Observation()  # its metrics do not arrive if Delta skips the write
            observed = verdicts if was_present else verdicts.observe(observation, *columns)
            transaction.write(quarantined_rows(observed, self._step.name, transaction.batch), table)
            counted = None if was_present else _wait_for_metrics(observation, time.monotonic() + OBSERVATION_LIMIT_S)
        if counted is None:
            counted = verdicts.agg(*columns).collect()[0].asDict()

        def counts_of(outcome: str) -> dict[str, int]:
            counts = {name: int(counted[f"{outcome}:{name}"]) for name in names}
            return {name: count for name, count in counts.items() if count}

        return BatchCounts(counts_of("quarantined"), counts_of("dropped"), counts_of("warned"))


def _good_rows(rows: DataFrame) -> DataFrame:
    """Return the good rows, without the columns about their checks."""
    if not verdict.has_verdict(rows):
        return rows
    return rows.where(~verdict.is_bad()).drop(verdict.VERDICT, verdict.BAD_ROW_KEY)


def _wait_for_metrics(observation: Observation, deadline: float) -> dict[str, Any] | None:
    """Return the observed metrics; None if none arrive until the deadline, because the plan did not run."""
    in_jvm: Any = getattr(observation, "_jo", None)
    if in_jvm is None:  # Spark Connect: `get` does not wait
        try:
            return observation.get
        except AssertionError:
            return None
    while not in_jvm.future().isCompleted():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)
    return observation.get


@contextmanager
def _persisted(batch: DataFrame, *, wanted: bool) -> Iterator[DataFrame]:
    """Yield the batch, persisted during this block if `wanted`, so that reading it twice computes it once."""
    if not wanted:
        yield batch
        return
    persisted = batch.persist()
    try:
        yield persisted
    finally:
        persisted.unpersist()
