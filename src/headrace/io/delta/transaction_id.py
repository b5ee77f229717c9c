"""Transaction ids: Delta skips a write whose application id and version the table already has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.config.models import Setting
from headrace.io.delta import delta_append
from headrace.io.delta.delta_table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TransactionId:
    """Who writes which batch: Delta skips a write whose stamp the table has seen."""

    writer: str
    batch: int
    is_new: bool = False  # no table can have it yet

    def append(
        self,
        rows: DataFrame,
        table: Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] = (),
        options: Mapping[str, Setting] | None = None,
    ) -> None:
        """Appends (or overwrites) under this stamp; the first write makes the table."""
        if self.is_new and mode == "append" and table.by_path and not options:
            done = delta_append.append_batch(
                rows, table.place, writer=self.writer, batch=self.batch, partition_by=partition_by
            )
            if done:
                return
        stamped = {**(options or {}), "txnAppId": self.writer, "txnVersion": str(self.batch)}
        table.save(rows.write.format("delta").mode(mode).options(**stamped), partition_by)

    @contextmanager
    def on(self, spark: SparkSession) -> Iterator[None]:
        """Stamps what the session commits meanwhile: for merges, which take no options."""
        marks = {"txnAppId": self.writer, "txnVersion": str(self.batch)}
        for key, value in marks.items():
            spark.conf.set(f"spark.databricks.delta.write.{key}", value)
        try:
            yield
        finally:
            for key in marks:
                spark.conf.unset(f"spark.databricks.delta.write.{key}")
