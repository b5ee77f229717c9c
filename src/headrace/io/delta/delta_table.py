"""A Delta table by its name: where it lies, how it is read, made and described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

CHANGE_DATA_FEED = {"delta.enableChangeDataFeed": "true"}  # of a table whose changes can be read


@dataclass(frozen=True)
class Table:
    """One table of an environment: `place` is a path, or a name in a catalog."""

    name: str
    place: str
    by_path: bool

    @property
    def in_sql(self) -> str:
        """The table as a statement names it."""
        return f"delta.`{self.place}`" if self.by_path else self.place

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
        if self.exists(spark):
            return
        # This goes on where a first write failed and left files behind, and knows names of three parts; Delta's own
        # builder does neither (4.4.0).
        empty = spark.createDataFrame([], schema)
        self.save(
            empty.write.format("delta").mode("append").options(**CHANGE_DATA_FEED if changes else {}), partition_by
        )
        if cluster_by:
            columns = ", ".join(f"`{column}`" for column in cluster_by)
            spark.sql(f"ALTER TABLE {self.in_sql} CLUSTER BY ({columns})")

    def save(self, writer: DataFrameWriter, partition_by: Sequence[str] = ()) -> None:
        """Writes to the table; partitioned if this makes it."""
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        if self.by_path:
            writer.save(self.place)
        else:
            writer.saveAsTable(self.place)

    def has_seen(self, spark: SparkSession, writer: str, batch: int) -> bool | None:
        """Whether a write of this writer's batch is in the table already; None where Delta's log cannot be asked."""
        if not self.by_path and not self.exists(spark):  # by path, a log without versions has seen nothing
            return False
        try:
            log = self._log(spark)
        except (AttributeError, NotImplementedError, TypeError):
            return None  # Databricks has other classes, and its shared clusters no way to the JVM at all
        none = getattr(spark._jvm, "scala.None$").__getattr__("MODULE$")
        seen = log.update(False, none, none).transactions().get(writer)
        return bool(seen.isDefined() and seen.get() >= batch)

    def _log(self, spark: SparkSession) -> Any:
        """Delta's own log of the table (4.4.0)."""
        place = self.place if self.by_path else self.delta(spark).detail().collect()[0]["location"]
        deltalog = getattr(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")
        return deltalog.forTable(spark._jsparkSession, place)


def table_of(environment: Environment, name: str) -> Table:
    """The table of that name in the environment."""
    tables = environment.tables
    if tables.root is not None:
        return Table(name, f"{tables.root.rstrip('/')}/{name}", by_path=True)
    return Table(name, f"{tables.catalog}.{tables.schema_}.{name}", by_path=False)
