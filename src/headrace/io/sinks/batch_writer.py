"""Write a step's batches exactly once: several sinks, quarantined rows, replaced and merged tables.

Every Delta write carries the query's id and the batch's number, as those of Delta's own streaming sink do. A batch
that is repeated after a crash is skipped by each table that has it. No table is written twice for one batch. Tables are
written before topics and the console, which do not know batches and get a repeated one again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.config.kinds.sinks import SINKS
from headrace.config.models import Environment, Sink, Step
from headrace.expectations import verdict
from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks.quarantine import quarantine_table, quarantined_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

# What happens to a row that fails a check.
OUTCOMES = ("quarantined", "dropped", "warned")
OBSERVATION_LIMIT_S = 10.0  # metrics arrive within milliseconds of the write, unless the plan did not run


@dataclass(frozen=True)
class BatchCounts:
    """How many rows of a batch failed each check, and how often the batch's plan ran."""

    quarantined: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    plan_runs: int = 1


class BatchWriter:
    """Write the batches of one step; Spark calls it with each of them."""

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
        # Whether no table can have the next batch. At the start, the table may have it: the last batch before a crash,
        # or several batches if the checkpoint is older than the table.
        self._next_batch_is_new = False
        self._had_failed_rows = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        transaction = TransactionId(str(query_id), number, is_new=self._next_batch_is_new)
        repeated = False if transaction.is_new else self._has_batch(self._sinks[0], batch, transaction)
        self._next_batch_is_new = False  # until the batch is written
        persist = repeated is not False or self._reads_batch_twice() or self._had_failed_rows
        with _persisted(batch, wanted=persist) as rows:
            counts, plan_runs, repeated = self._write(rows, transaction, repeated=repeated)
        self._next_batch_is_new = repeated is False
        self._had_failed_rows = counts != BatchCounts()
        self._on_counts(number, counts if persist else replace(counts, plan_runs=plan_runs))

    def _reads_batch_twice(self) -> bool:
        # A merge reads its rows twice, and so do several sinks. The batch is then persisted, because a plan with state
        # must not run twice for one batch.
        return len(self._sinks) > 1 or self._sinks[0].mode == "upsert"

    def _write(
        self, batch: DataFrame, transaction: TransactionId, *, repeated: bool | None
    ) -> tuple[BatchCounts, int, bool]:
        """Write the batch. Return its counts, how often its plan ran unless it is persisted, and `repeated`.

        `repeated` says whether the first table has the batch already. It is None if that is unknown: then the batch is
        written anyway. If Delta skips it, its plan does not run and no metrics arrive, so the table had it.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        checked: list[tuple[DataFrame, Observation]] = []

        def observe(frame: DataFrame) -> DataFrame:
            if not verdict.has_verdict(frame):
                return frame
            checked.append((frame, Observation()))
            return frame.observe(checked[-1][1], F.count(verdict.VERDICT).alias("failed"))

        rows = batch
        if self._transform is not None or self._step.expect:  # both apply to good rows only
            rows = _good_rows(observe(rows))
        if self._transform is not None:
            rows = self._transform(rows)
        if self._step.copies_changes and delta_merge.CHANGE_TYPE in rows.columns:
            rows = delta_merge.changed_rows(rows)
        rows = _good_rows(observe(verdict.check_result_rows(rows, self._step.expect)))
        observations = [observation for _, observation in checked]
        if repeated is None and not observations:
            observations = [Observation()]
            rows = rows.observe(observations[0], F.count(F.lit(None)).alias("failed"))
        first, *others = self._sinks
        # The step's sinks may have changed since a crash: other tables may have a batch that the first one lacks.
        first_transaction = replace(transaction, is_new=repeated is False)
        metrics: list[dict[str, Any] | None] = []
        if repeated is not True:
            self._write_sink(rows, first, first_transaction)
            deadline = time.monotonic() + OBSERVATION_LIMIT_S
            metrics = [_metrics(observation, deadline) for observation in observations]
            repeated = None in metrics
        if repeated:
            # The table has this batch, but the plan must still run: otherwise the state store has no version for the
            # batch to commit, and the query fails (Spark 4.2.0). Counting the failed rows runs it.
            failed = [frame.where(F.col(verdict.VERDICT).isNotNull()).count() for frame, _ in checked]
            if not checked:
                rows.write.format("noop").mode("overwrite").save()
        else:
            failed = [values["failed"] for values in metrics if values is not None]
        for sink in others:
            self._write_sink(rows, sink, transaction)
        with_failed_rows = [frame for (frame, _), count in zip(checked, failed, strict=False) if count]
        counts = BatchCounts()
        if with_failed_rows:
            counts = self._quarantine(with_failed_rows, first_transaction, repeated=repeated)
        return counts, 1 + len(with_failed_rows), repeated

    def _has_batch(self, sink: Sink, batch: DataFrame, transaction: TransactionId) -> bool | None:
        if not sink.table:
            return False
        table = table_of(self._environment, sink.table)
        return table.has_batch(batch.sparkSession, transaction.application, transaction.batch)

    def _write_sink(self, rows: DataFrame, sink: Sink, transaction: TransactionId) -> None:
        implementation = import_module(SINKS[sink.kind].implementation)
        implementation.write_batch(rows, sink, self._step, self._environment, transaction)

    def _quarantine(self, frames: list[DataFrame], transaction: TransactionId, *, repeated: bool) -> BatchCounts:
        """Write the bad rows into the quarantine table. Return how many rows failed each check."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        selected = [frame.where(F.col(verdict.VERDICT).isNotNull()).select(verdict.VERDICT) for frame in frames]
        verdicts = selected[0]
        for more in selected[1:]:
            verdicts = verdicts.union(more)
        names = list(dict.fromkeys(verdict.rule_names(self._step)))
        columns: list[Column] = [
            F.count_if(F.array_contains(f"{verdict.VERDICT}.{outcome}", name)).alias(f"{outcome}:{name}")
            for outcome in OUTCOMES
            for name in names
        ]
        table = quarantine_table(self._step, self._environment)
        counted: dict[str, Any] | None = None
        if table is not None:
            observation = Observation()
            observed = verdicts if repeated else verdicts.observe(observation, *columns)
            transaction.write(quarantined_rows(observed, self._step.name, transaction.batch), table)
            counted = None if repeated else _metrics(observation, time.monotonic() + OBSERVATION_LIMIT_S)
        if counted is None:
            counted = verdicts.agg(*columns).collect()[0].asDict()
        per_outcome = {
            outcome: {name: int(counted[f"{outcome}:{name}"]) for name in names if counted[f"{outcome}:{name}"]}
            for outcome in OUTCOMES
        }
        return BatchCounts(per_outcome["quarantined"], per_outcome["dropped"], per_outcome["warned"])


def _good_rows(rows: DataFrame) -> DataFrame:
    if not verdict.has_verdict(rows):
        return rows
    return rows.where(~verdict.is_bad()).drop(verdict.VERDICT, verdict.BAD_ROW_KEY)


def _metrics(observation: Observation, deadline: float) -> dict[str, Any] | None:
    """Return the observed metrics, or None if the plan did not run: Delta skips a batch that the table has."""
    in_jvm: Any = getattr(observation, "_jo", None)
    if in_jvm is None:  # Spark Connect, where `get` does not wait
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
    """Yield the batch, computed only once if it will be read more than once."""
    if not wanted:
        yield batch
        return
    persisted = batch.persist()
    try:
        yield persisted
    finally:
        persisted.unpersist()
