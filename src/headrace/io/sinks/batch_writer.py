"""Writes a step's batches exactly once: several tables, refused rows, replacements and merges.

The query's id and the batch's number go with every Delta write, just as Delta's own streaming sink does it: a batch
that is repeated after a crash is skipped by each table that has it. No table is touched twice for one batch. Tables
are written before topics and the console, which know no batches and get a repeated one again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Sink, Step
from headrace.errors import ConfigurationError
from headrace.expectations import verdict
from headrace.io.delta import delta_merge
from headrace.io.delta.delta_table import Table, table_of
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks import kafka_sink
from headrace.io.sinks.console_sink import print_batch
from headrace.io.sinks.quarantine import bad_rows, quarantine_rows, quarantine_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

KINDS = ("refused", "dropped", "warned")
OBSERVATION_LIMIT_S = 10.0  # metrics arrive within milliseconds of the write, unless the plan did not run


@dataclass(frozen=True)
class BatchCounts:
    """What became of a batch's judged rows, per rule."""

    refused: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    passes: int = 1


class BatchWriter:
    """Called by Spark with each batch of one step."""

    def __init__(
        self,
        step: Step,
        environment: Environment,
        *,
        transform: Callable[[DataFrame], DataFrame] | None,
        note: Callable[[int, BatchCounts], None],
    ) -> None:
        self._step, self._environment, self._transform, self._note = step, environment, transform, note
        self._sinks = sorted(step.writes, key=lambda sink: sink.kind != "table")
        # Until the table turns out to lack a batch, each may have been written before: the last one before a crash, and
        # several where the checkpoint is older than the table.
        self._is_ahead = False
        self._had_remarks = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        writer = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        stamp = TransactionId(str(writer), number, is_new=self._is_ahead)
        repeated = False if stamp.is_new else self._has(self._sinks[0], batch, stamp)
        self._is_ahead = False  # until the batch is written
        keep = repeated is not False or self._several() or self._had_remarks
        with _persisted(batch, wanted=keep) as arrived:
            counts, passes, repeated = self._write(arrived, stamp, repeated=repeated)
        self._is_ahead = repeated is False
        self._had_remarks = counts != BatchCounts()
        self._note(number, counts if keep else replace(counts, passes=passes))

    def _several(self) -> bool:
        # A merge reads its rows twice; a state store must not be run through twice.
        return len(self._sinks) > 1 or self._sinks[0].mode == "upsert"

    def _write(
        self, arrived: DataFrame, stamp: TransactionId, *, repeated: bool | None
    ) -> tuple[BatchCounts, int, bool]:
        """Write the batch. Return its counts, how often the plan ran unless the batch is kept, and `repeated`.

        `repeated` is None where the table cannot be asked whether it has the batch. Then the batch is written: Delta
        skips it if the table has it, and its plan does not run: no observation comes, and `repeated` is returned true.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        watched: list[tuple[DataFrame, Observation]] = []

        def watch(frame: DataFrame) -> DataFrame:
            if not verdict.has_verdict(frame):
                return frame
            watched.append((frame, Observation()))
            return frame.observe(watched[-1][1], F.count(verdict.VERDICT).alias("remarked"))

        rows = arrived
        if self._transform is not None or self._step.expect:  # which is about good rows
            rows = _good(watch(rows))
        if self._transform is not None:
            rows = self._transform(rows)
        if self._step.copies_changes and delta_merge.CHANGE_TYPE in rows.columns:
            rows = delta_merge.changed_rows(rows)
        rows = _good(watch(verdict.check_result_rows(rows, self._step.expect)))
        observations = [observation for _, observation in watched]
        if repeated is None and not observations:
            observations = [Observation()]
            rows = rows.observe(observations[0], F.count(F.lit(None)).alias("remarked"))
        first, *others = self._sinks
        # The step may have had other tables before a crash: what the first has not seen, another may have.
        new_to_first = replace(stamp, is_new=repeated is False)
        metrics: list[dict[str, Any] | None] = []
        if repeated is not True:
            self._put(rows, first, new_to_first)
            deadline = time.monotonic() + OBSERVATION_LIMIT_S
            metrics = [_metrics(observation, deadline) for observation in observations]
            repeated = None in metrics
        if repeated:
            # The table has this batch: count again, which also runs the plan once, as the state store requires (4.2.0).
            remarked = [frame.where(F.col(verdict.VERDICT).isNotNull()).count() for frame, _ in watched]
            if not watched:
                rows.write.format("noop").mode("overwrite").save()
        else:
            remarked = [one["remarked"] for one in metrics if one is not None]
        for sink in others:
            self._put(rows, sink, stamp)
        remarks = [frame for (frame, _), count in zip(watched, remarked, strict=False) if count]
        counts = self._quarantine(remarks, new_to_first, repeated=repeated) if remarks else BatchCounts()
        return counts, 1 + len(remarks), repeated

    def _has(self, sink: Sink, batch: DataFrame, stamp: TransactionId) -> bool | None:
        if not sink.table:
            return False
        return table_of(self._environment, sink.table).has_seen(batch.sparkSession, stamp.writer, stamp.batch)

    def _put(self, rows: DataFrame, sink: Sink, stamp: TransactionId) -> None:
        if sink.table:
            # With output complete each batch is the whole result.
            mode = "replace" if self._step.output == "complete" else sink.mode
            if mode != "upsert" and self._step.copies_changes:
                rows = rows.drop(*delta_merge.CHANGE_COLUMNS)
            WRITES[mode](rows, table_of(self._environment, sink.table), self._step, sink, stamp)
        elif sink.topic:
            options = {**kafka_sink.writer_options(sink, self._environment), **sink.options}
            kafka_sink.as_records(rows).write.format("kafka").options(**options).save()
        elif sink.console:
            print_batch(rows, stamp.batch)
        else:
            raise ConfigurationError(f"a {sink.kind} cannot be one of several sinks", fix="give it a step of its own")

    def _quarantine(self, remarks: list[DataFrame], stamp: TransactionId, *, repeated: bool) -> BatchCounts:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        said = [frame.where(F.col(verdict.VERDICT).isNotNull()).select(verdict.VERDICT) for frame in remarks]
        verdicts = said[0]
        for more in said[1:]:
            verdicts = verdicts.union(more)
        names = dict.fromkeys(verdict.rule_names(self._step))
        tally: list[Column] = [
            F.count_if(F.array_contains(f"{verdict.VERDICT}.{kind}", name)).alias(f"{kind}:{name}")
            for kind in KINDS
            for name in names
        ]
        table = quarantine_table(self._step, self._environment)
        counted: dict[str, Any] | None = None
        if table is not None:
            observation = Observation()
            refused = bad_rows(verdicts.observe(observation, *tally) if repeated is False else verdicts)
            stamp.append(quarantine_rows(refused, self._step.name, stamp.batch), table)
            counted = _metrics(observation, time.monotonic() + OBSERVATION_LIMIT_S) if repeated is False else None
        if counted is None:
            counted = verdicts.agg(*tally).collect()[0].asDict()
        per_kind = {
            kind: {name: int(counted[f"{kind}:{name}"]) for name in names if counted[f"{kind}:{name}"]}
            for kind in KINDS
        }
        return BatchCounts(per_kind["refused"], per_kind["dropped"], per_kind["warned"])


def _append(rows: DataFrame, table: Table, step: Step, sink: Sink, stamp: TransactionId) -> None:
    stamp.append(rows, table, partition_by=sink.partition_by, options=sink.options)


def _replace(rows: DataFrame, table: Table, step: Step, sink: Sink, stamp: TransactionId) -> None:
    stamp.append(rows, table, mode="overwrite", partition_by=sink.partition_by, options=sink.options)


def _upsert(rows: DataFrame, table: Table, step: Step, sink: Sink, stamp: TransactionId) -> None:
    delta_merge.upsert(
        rows,
        table,
        keys=sink.keys,
        sequence=str(sink.sequence),
        partition_by=sink.partition_by,
        stamp=stamp,
        # A group's later result counts more rows, and a later commit is newer, whatever their sequence.
        as_new_wins=step.output == "update" or step.copies_changes,
    )


WRITES: dict[str, Callable[[DataFrame, Table, Step, Sink, TransactionId], None]] = {
    "append": _append,
    "replace": _replace,
    "upsert": _upsert,
}


def _good(rows: DataFrame) -> DataFrame:
    if not verdict.has_verdict(rows):
        return rows
    return rows.where(~verdict.is_bad()).drop(verdict.VERDICT, verdict.BAD_ROW_KEY)


def _metrics(observation: Observation, deadline: float) -> dict[str, Any] | None:
    """Return what was observed, or None if the plan did not run, as when Delta skips a write that it has."""
    in_jvm: Any = getattr(observation, "_jo", None)
    if in_jvm is None:  # Spark Connect, whose `get` does not wait
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
    """The batch, computed once when it will be read more than once."""
    if not wanted:
        yield batch
        return
    kept = batch.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
