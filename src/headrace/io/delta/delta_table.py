"""Delta tables by their names in the bundle: where they are, and how to read, create and write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Setting
from headrace.spark.schema_differences import Difference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

CHANGE_DATA_FEED = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class Table:
    """One table of an environment."""

    name: str
    location: str  # a path if `by_path`, otherwise the full name in a catalog
    by_path: bool

    @property
    def sql_name(self) -> str:
        """The name of the table in SQL statements."""
        return f"delta.`{self.location}`" if self.by_path else self.location

    def exists(self, spark: SparkSession) -> bool:
        """Return whether the table has been created."""
        from delta.tables import DeltaTable

        if self.by_path:
            return bool(DeltaTable.isDeltaTable(spark, self.location))
        return spark.catalog.tableExists(self.location)

    def read(self, spark: SparkSession, options: Mapping[str, Setting] | None = None) -> DataFrame:
        """Return the rows that the table has now."""
        reader = spark.read.format("delta").options(**(options or {}))
        return reader.load(self.location) if self.by_path else reader.table(self.location)

    def stream(self, spark: SparkSession, options: Mapping[str, Setting]) -> DataFrame:
        """Return the table's rows as a stream."""
        reader = spark.readStream.format("delta").options(**options)
        return reader.load(self.location) if self.by_path else reader.table(self.location)

    def delta(self, spark: SparkSession) -> Any:
        """Return Delta's own handle (`DeltaTable`), for merges, history and details."""
        from delta.tables import DeltaTable

        return DeltaTable.forPath(spark, self.location) if self.by_path else DeltaTable.forName(spark, self.location)

    def create(
        self,
        spark: SparkSession,
        schema: StructType,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        change_data_feed: bool = False,
    ) -> None:
        """Create the empty table if it does not exist."""
        if self.exists(spark):
            return
        # Create the table by writing no rows. Delta's own table builder fails for names of three parts, and for
        # directories in which a failed first write has left files (Delta 4.4.0).
        empty = spark.createDataFrame([], schema)
        properties = CHANGE_DATA_FEED if change_data_feed else {}
        self.save(empty.write.format("delta").mode("append").options(**properties), partition_by)
        if cluster_by:
            columns = ", ".join(f"`{column}`" for column in cluster_by)
            spark.sql(f"ALTER TABLE {self.sql_name} CLUSTER BY ({columns})")

    def add_columns(self, spark: SparkSession, columns: Sequence[Difference]) -> None:
        """Add the columns, and the fields in columns, that only the new one of two compared schemas has."""
        spark.sql(self.add_columns_statement(columns))

    def add_columns_statement(self, columns: Sequence[Difference]) -> str:
        """Return the SQL statement of `add_columns`."""
        added = ", ".join(f"{each.sql_name} {each.new_type}" for each in columns)
        return f"ALTER TABLE {self.sql_name} ADD COLUMNS ({added})"

    def save(self, writer: DataFrameWriter, partition_by: Sequence[str] = ()) -> None:
        """Write the writer's rows to the table, and create the table with these partitions if it does not exist."""
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        if self.by_path:
            writer.save(self.location)
        else:
            writer.saveAsTable(self.location)

    def has_batch(self, spark: SparkSession, application: str, batch: int) -> bool | None:
        """Return whether the table has this batch, or a later one, of the query with the id `application`.

        Return None if Delta's log cannot be read.
        """
        if not self.by_path and not self.exists(spark):  # for a missing path, Delta returns a log without transactions
            return False
        try:
            last_batch = self.snapshot(spark).transactions().get(application)
        except (AttributeError, NotImplementedError, TypeError):
            return None  # Databricks has other classes, and its shared clusters give no access to the JVM
        return bool(last_batch.isDefined() and last_batch.get() >= batch)

    def snapshot(self, spark: SparkSession) -> Any:
        """Return Delta's own snapshot of the table's newest version, a Java object (Delta 4.4.0).

        Raise AttributeError, NotImplementedError or TypeError if Delta has other classes or there is no JVM.
        """
        path = self.location if self.by_path else self.delta(spark).detail().collect()[0]["location"]
        delta_log = getattr(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")
        none = getattr(spark._jvm, "scala.None$").__getattr__("MODULE$")
        return delta_log.forTable(spark._jsparkSession, path).update(False, none, none)


def table_of(environment: Environment, name: str) -> Table:
    """Return the table of this name in the environment."""
    tables = environment.tables
    if tables.root is not None:
        return Table(name, f"{tables.root.rstrip('/')}/{name}", by_path=True)
    return Table(name, f"{tables.catalog}.{tables.schema_}.{name}", by_path=False)
