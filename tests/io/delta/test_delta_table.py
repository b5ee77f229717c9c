"""Tables at a path and tables of a catalog: created, written, read, and asked which batches they have."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Environment, LocalEngine, Tables
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.transaction_id import TransactionId


@pytest.fixture(params=["path", "catalog"])
def table(request, spark, tmp_path):
    """A table that does not exist yet: one at a path, one of a catalog."""
    by_path = request.param == "path"
    tables = Tables(root=f"{tmp_path}/") if by_path else Tables(catalog="spark_catalog", schema_="shop")
    environment = Environment(name="local", engine=LocalEngine(kind="local"), tables=tables, checkpoints="none")
    if not by_path:
        spark.sql(f"CREATE DATABASE shop LOCATION '{tmp_path}'")
        request.addfinalizer(lambda: spark.sql("DROP DATABASE shop CASCADE"))
    table = table_of(environment, "orders")
    assert table.location == (f"{tmp_path}/orders" if by_path else "spark_catalog.shop.orders")
    return table


def test_table_is_created_written_and_read(spark, table, tmp_path):
    rows = spark.createDataFrame([("a", 1), ("b", 2)], "id STRING, n INT")
    assert not table.exists(spark)
    assert table.has_batch(spark, "a query", 0) is False
    table.create(spark, rows.schema, partition_by=["id"])
    assert table.exists(spark)
    table.create(spark, rows.schema, cluster_by=["n"])  # it exists, and is not changed
    detail = table.delta(spark).detail().collect()[0]
    assert (detail["partitionColumns"], detail["clusteringColumns"]) == (["id"], [])
    assert not table.has_batch(spark, "a query", 0)

    TransactionId("a query", 3).write(rows, table)
    TransactionId("a query", 3).write(rows, table)  # skipped: the table has this batch
    assert [table.has_batch(spark, "a query", number) for number in (2, 3, 4)] == [True, True, False]
    assert not table.has_batch(spark, "another query", 3)
    TransactionId("another query", 3).write(rows.where("n = 2"), table)
    assert sorted(map(tuple, table.read(spark).collect())) == [("a", 1), ("b", 2), ("b", 2)]
    assert table.read(spark, {"versionAsOf": 0}).count() == 0

    stream = table.stream(spark, {"startingVersion": "2"})
    assert (stream.isStreaming, stream.columns) == (True, ["id", "n"])


def test_table_can_be_clustered_and_have_a_change_data_feed(spark, table):
    schema = spark.createDataFrame([], "id STRING, n INT").schema
    table.create(spark, schema, cluster_by=["id"], change_data_feed=True)
    detail = table.delta(spark).detail().collect()[0]
    assert detail["clusteringColumns"] == ["id"]
    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"


def test_table_can_be_created_where_a_first_write_failed(spark, tmp_path):
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root=str(tmp_path)), checkpoints="none"
    )
    table = table_of(environment, "orders")
    rows = spark.createDataFrame([(1,)], "n INT")
    failing = rows.select(F.raise_error(F.lit("the write fails")).cast("int").alias("n"))
    with pytest.raises(Exception, match="the write fails"):
        TransactionId("a query", 0).write(failing, table)
    assert (tmp_path / "orders" / "_delta_log").exists()
    assert not table.exists(spark)
    table.create(spark, rows.schema)
    assert table.read(spark).columns == ["n"]
