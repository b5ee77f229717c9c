"""The orders pipeline without Headrace: only PySpark and Delta, with tuned or default settings.

It upserts the customers and runs three queries. Bronze filters bad rows out; all sinks are Delta's own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

ORDER = """order_id STRING, customer_id STRING, ordered_at TIMESTAMP, quantity INT,
    unit_price DECIMAL(10,2), amount DECIMAL(10,2)"""
CUSTOMER = "customer_id STRING, name STRING, country STRING, segment STRING, updated_at TIMESTAMP"
GOOD_ORDER = """_corrupt_record IS NULL AND order_id IS NOT NULL AND customer_id IS NOT NULL
    AND quantity BETWEEN 1 AND 1000 AND ordered_at <= current_timestamp() + INTERVAL 5 MINUTES"""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
TUNED = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    "spark.databricks.delta.autoCompact.minNumFiles": "200",
    "spark.databricks.delta.autoCompact.maxFileSize": "2097152",
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 1 hour",
    "spark.hadoop.fs.file.impl": "headrace.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
}


def open_session(arguments: argparse.Namespace) -> SparkSession:
    """Return a session with the settings that the command line selects."""
    settings = {
        "spark.master": f"local[{arguments.cores}]",
        "spark.driver.memory": arguments.memory,
        "spark.driver.extraClassPath": arguments.jars,
        "spark.driver.extraJavaOptions": arguments.java_options,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(arguments.into / "warehouse"),
        "spark.local.dir": str(arguments.into / "scratch"),
        **DELTA,
    }
    if arguments.settings == "tuned":
        settings |= TUNED
        settings |= {"spark.sql.shuffle.partitions": arguments.cores, "spark.default.parallelism": arguments.cores}
    settings |= dict(setting.split("=", 1) for setting in arguments.setting)
    builder = SparkSession.builder.appName("orders baseline")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def good_orders(spark: SparkSession, directory: Path, files_per_trigger: int) -> DataFrame:
    """Return a stream of the orders in a directory, without bad rows."""
    reader = spark.readStream.schema(f"{ORDER}, _corrupt_record STRING").option("maxFilesPerTrigger", files_per_trigger)
    return reader.json(str(directory)).where(GOOD_ORDER).drop("_corrupt_record")


def deduplicated(orders: DataFrame) -> DataFrame:
    """Return the orders without duplicates, with a watermark."""
    return orders.withWatermark("ordered_at", "10 minutes").dropDuplicatesWithinWatermark(["order_id"])


class Pipeline:
    """The queries of the pipeline, which read from the directory `data` and write to the directory `into`."""

    def __init__(self, spark: SparkSession, data: Path, into: Path, files_per_trigger: int) -> None:
        self.spark, self.data, self.into, self.files_per_trigger = spark, data, into, files_per_trigger

    def customers(self) -> None:
        """Upsert the newest row of each customer, over all available data."""
        spark, table = self.spark, self.table("customers")
        rows = spark.readStream.schema(CUSTOMER).option("header", True).csv(str(self.data / "customers"))
        DeltaTable.createIfNotExists(spark).location(table).addColumns(rows.schema).execute()

        def upsert(batch: DataFrame, number: int) -> None:
            newest = Window.partitionBy("customer_id").orderBy(F.col("updated_at").desc())
            rows = batch.withColumn("rank", F.row_number().over(newest)).where("rank = 1").drop("rank")
            merge = (
                DeltaTable.forPath(spark, table)
                .alias("old")
                .merge(rows.alias("new"), "old.customer_id = new.customer_id")
            )
            merge.whenMatchedUpdateAll("new.updated_at > old.updated_at").whenNotMatchedInsertAll().execute()

        checkpoint = str(self.into / "checkpoints" / "customers")
        writer = rows.writeStream.foreachBatch(upsert).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()

    def landed_orders(self) -> DataFrame:
        return good_orders(self.spark, self.data / "orders", self.files_per_trigger)

    def bronze_orders(self) -> DataFrame:
        return deduplicated(self.landed_orders())

    def silver_orders(self) -> DataFrame:
        orders = self.spark.readStream.format("delta").load(self.table("bronze_orders"))
        customers = self.spark.read.format("delta").load(self.table("customers"))
        return orders.join(customers, "customer_id", "left")

    def gold_revenue(self) -> DataFrame:
        orders = self.spark.readStream.format("delta").load(self.table("silver_orders"))
        windows = orders.withWatermark("ordered_at", "20 minutes").groupBy(
            F.window("ordered_at", "1 minute"), "country"
        )
        revenue = windows.agg(F.count("*").alias("orders"), F.sum("amount").alias("revenue"))
        return revenue.select("window.start", "window.end", "country", "orders", "revenue")

    def start(self, step: str, *, follow: bool) -> StreamingQuery:
        """Start the query of a step: over all available data, or continuously if `follow`."""
        frame: DataFrame = getattr(self, step)()
        if follow:  # the next query, which reads this table, starts before this query has written a batch
            DeltaTable.createIfNotExists(self.spark).location(self.table(step)).addColumns(frame.schema).execute()
        writer = frame.writeStream.format("delta").queryName(step)
        writer = writer.option("checkpointLocation", str(self.into / "checkpoints" / step))
        writer = writer if follow else writer.trigger(availableNow=True)
        return writer.start(self.table(step))

    def table(self, step: str) -> str:
        """Return the path of a step's table."""
        return str(self.into / "tables" / step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("--settings", choices=["tuned", "stock"], default="tuned", help="stock: Spark's own defaults")
    parser.add_argument("--only", help="run only this query, without the customers")
    parser.add_argument("--follow", action="store_true", help="run the queries continuously and concurrently")
    parser.add_argument("--progress", type=Path, help="write the duration of each batch to a JSON file")
    parser.add_argument("--files-per-trigger", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--jars", required=True, help="class path with the jars of Delta")
    parser.add_argument("--java-options", default="")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()

    spark = open_session(arguments)
    pipeline = Pipeline(spark, arguments.data, arguments.into, arguments.files_per_trigger)
    if not arguments.only:
        pipeline.customers()
        spark.streams.resetTerminated()
    batches = []
    for step in [arguments.only] if arguments.only else ["bronze_orders", "silver_orders", "gold_revenue"]:
        query = pipeline.start(step, follow=arguments.follow)
        if not arguments.follow:
            query.awaitTermination()
            batches += [
                {"step": step, "rows": report["numInputRows"], "milliseconds": report["batchDuration"]}
                for report in query.recentProgress
            ]
    if arguments.follow:
        spark.streams.awaitAnyTermination()
    if arguments.progress:
        arguments.progress.write_text(json.dumps(batches))
    spark.stop()


if __name__ == "__main__":
    main()
