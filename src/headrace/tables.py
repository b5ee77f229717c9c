"""A Delta table by its name: where it lies, how it is read, made and described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Table:
    """One table of an environment: `place` is a path, or a name in a catalog."""

    name: str
    place: str
    by_path: bool

    def exists(self, spark: SparkSession) -> bool:
        """Whether the table has been made."""
        from delta.tables import DeltaTable

        if self.by_path:
            return bool(DeltaTable.isDeltaTable(spark, self.place))
        return spark.catalog.tableExists(self.place)

    def read(self, spark: SparkSession, options: Mapping[str, Setting] | None = None) -> DataFrame:
        """The table as it is now."""
        reader = spark.read.format("delta").options(**(options or {}))
        return reader.load(self.place) if self.by_path else reader.table(self.place)

    def stream(self, spark: SparkSession, options: Mapping[str, Setting]) -> DataFrame:
        """The table's rows as they come in."""
        reader = spark.readStream.format("delta").options(**options)
        return reader.load(self.place) if self.by_path else reader.table(self.place)

    def delta(self, spark: SparkSession) -> Any:
        """Delta's own handle, for merges, history and details."""
        from delta.tables import DeltaTable

        return DeltaTable.forPath(spark, self.place) if self.by_path else DeltaTable.forName(spark, self.place)

    def make(
        self,
        spark: SparkSession,
        schema: StructType,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        changes: bool = False,
    ) -> None:
        """Makes the empty table unless it is there; `changes` lets others read what was changed in it."""
        from delta.tables import DeltaTable

        if self.exists(spark):
            return
        if not self.by_path:
            self._make_by_name(spark, schema, partition_by, cluster_by, changes=changes)
            return
        builder = DeltaTable.createIfNotExists(spark).location(self.place).addColumns(schema)
        if partition_by:
            builder = builder.partitionedBy(*partition_by)
        if cluster_by:
            builder = builder.clusterBy(*cluster_by)
        if changes:
            builder = builder.property("delta.enableChangeDataFeed", "true")
        builder.execute()

    def _make_by_name(
        self,
        spark: SparkSession,
        schema: StructType,
        partition_by: Sequence[str],
        cluster_by: Sequence[str],
        *,
        changes: bool,
    ) -> None:
        # Delta's own builder knows no name of three parts (4.4.0).
        writer = spark.createDataFrame([], schema).writeTo(self.place).using("delta")
        if partition_by:
            writer = writer.partitionedBy(*partition_by)
        if cluster_by:
            writer = writer.clusterBy(*cluster_by)
        if changes:
            writer = writer.tableProperty("delta.enableChangeDataFeed", "true")
        writer.create()

    def has_seen(self, spark: SparkSession, writer: str, batch: int) -> bool:
        """Whether a write of this writer's batch is in the table already (asked of Delta's log, 4.4.0)."""
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        none = getattr(jvm, "scala.None$").__getattr__("MODULE$")
        place = self.place if self.by_path else self.delta(spark).detail().collect()[0]["location"]
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, place)
        newest = log.update(False, none, none)
        seen = newest.transactions().get(writer)
        return bool(seen.isDefined() and seen.get() >= batch)


def table_of(environment: Environment, name: str) -> Table:
    """The table of that name in the environment."""
    tables = environment.tables
    if tables.root is not None:
        return Table(name, f"{tables.root.rstrip('/')}/{name}", by_path=True)
    return Table(name, f"{tables.catalog}.{tables.schema_}.{name}", by_path=False)


@dataclass(frozen=True)
class Stamp:
    """Who writes which batch: Delta skips a write whose stamp the table has seen."""

    writer: str
    batch: int

    def append(
        self,
        rows: DataFrame,
        table: Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Appends (or overwrites) under this stamp; the first write makes the table."""
        stamped = {"txnAppId": self.writer, "txnVersion": str(self.batch), **(properties or {})}
        writer = rows.write.format("delta").mode(mode).options(**stamped)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        if table.by_path:
            writer.save(table.place)
        else:
            writer.saveAsTable(table.place)

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
