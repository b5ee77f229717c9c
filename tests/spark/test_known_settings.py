"""Misspelt names of Spark settings."""

from __future__ import annotations

import pytest

from headrace.spark.known_settings import misspelt_settings


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("spark.sql.shuffle.partition", "spark.sql.shuffle.partitions"),
        ("spark.sql.streaming.noDataMicroBatch.enabled", "spark.sql.streaming.noDataMicroBatches.enabled"),
        ("spark.executor.memroy", "spark.executor.memory"),
    ],
)
def test_similar_setting_is_suggested(spark, name, similar):
    assert list(misspelt_settings(spark, [name])) == [f"Spark has no setting {name}; did you mean {similar}?"]


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.shuffle.partitions",
        "spark.sql.streaming.stateStore.rocksdb.compactOnCommit",
        "spark.databricks.delta.properties.defaults.logRetentionDuration",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.sql.catalog.spark_catalog",
        "spark.my.plugin",
        "shuffle.partition",
    ],
)
def test_known_settings_and_those_of_plugins_are_not_reported(spark, name):
    assert list(misspelt_settings(spark, [name])) == []


def test_without_a_jvm_nothing_is_reported():
    assert list(misspelt_settings(object(), ["spark.sql.shuffle.partition"])) == []
