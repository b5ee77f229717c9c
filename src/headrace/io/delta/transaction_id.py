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
    """The query's id as the application, the batch's number as the version; as Delta's own streaming sink does."""

    application: str
    batch: int
    is_new: bool = False  # no table can have this batch yet

    def write(
        self,
        rows: DataFrame,
        table: Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] = (),
        options: Mapping[str, Setting] | None = None,
    ) -> None:
        """Append to the table, or overwrite it; the first write creates the table."""
        if self.is_new and mode == "append" and table.by_path and not options:
            is_written = delta_append.append_batch(
                rows, table.location, application=self.application, batch=self.batch, partition_by=partition_by
            )
            if is_written:
                return
        with_id = {**(options or {}), "txnAppId": self.application, "txnVersion": str(self.batch)}
        table.save(rows.write.format("delta").mode(mode).options(**with_id), partition_by)

    @contextmanager
    def in_session(self, spark: SparkSession) -> Iterator[None]:
        """Add the id to all commits of the session meanwhile: for merges, which take no options."""
        settings = {"txnAppId": self.application, "txnVersion": str(self.batch)}
        for key, value in settings.items():
            spark.conf.set(f"spark.databricks.delta.write.{key}", value)
        try:
            yield
        finally:
            for key in settings:
                spark.conf.unset(f"spark.databricks.delta.write.{key}")
