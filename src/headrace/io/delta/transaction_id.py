"""Transaction ids: an application id and a version.

Delta skips a write if the table already has the same application id with the same version or a later one.
"""

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
    """The transaction id of one batch. It has the same parts as the ids of Delta's own streaming sink."""

    application: str  # Delta's application id: the id of the query
    batch: int  # Delta's version: the number of the batch
    is_new: bool = False  # it is certain that the written tables do not have this batch; false if this is unknown

    def write(
        self,
        rows: DataFrame,
        table: Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] = (),
        options: Mapping[str, Setting] | None = None,
    ) -> None:
        """Write the rows to the table with this id; `mode` is "append" or "overwrite". Create the table if needed."""
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
        """Add the id to all commits that the session makes in this block. Merges need this, as they take no options."""
        settings = {"txnAppId": self.application, "txnVersion": str(self.batch)}
        for key, value in settings.items():
            spark.conf.set(f"spark.databricks.delta.write.{key}", value)
        try:
            yield
        finally:
            for key in settings:
                spark.conf.unset(f"spark.databricks.delta.write.{key}")
