"""Settings of a step: they apply to its query, and to nothing else in the session."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headrace.errors import ConfigurationError
from headrace.runtime import runner
from headrace.runtime.session_settings import misspelled_settings, session_settings


def with_partitions(rows, names):
    partitions = F.lit(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return rows.join(names, "value").withColumn("partitions", partitions)


def test_settings_of_a_step_apply_to_its_query_only(flow):
    flow.source("lines", "text")
    flow.feed("lines", "a")
    flow.spark.createDataFrame([("a", "Ada")], "value STRING, name STRING").write.format("delta").save(
        str(flow.directory / "tables" / "names")
    )
    flow.steps(f"""
        names: {{layer: bronze, reads: {{names: {{source: lines}}}}, writes: {{table: names}}}}
        numbered:
          layer: bronze
          reads: {{rows: {{source: lines}}, names: {{table: names, static: true}}}}
          transform: {__name__}:with_partitions
          writes: {{table: numbered}}
          settings: {{spark.sql.shuffle.partitions: 3, spark.headrace.test: 1}}
        """)
    before = flow.spark.conf.get("spark.sql.shuffle.partitions")
    flow.run("numbered")
    assert [row["partitions"] for row in flow.read("numbered")] == ["3"]
    checkpoint = flow.directory / "checkpoints/flow/numbered/1/spark/offsets/0"
    assert '"spark.sql.shuffle.partitions":"3"' in checkpoint.read_text()
    assert flow.spark.conf.get("spark.sql.shuffle.partitions") == before
    assert flow.spark.conf.get("spark.headrace.test", None) is None


def test_settings_before_an_invalid_one_are_restored(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    settings = {"spark.sql.shuffle.partitions": 7, "spark.sql.warehouse.dir": "elsewhere"}
    with pytest.raises(ConfigurationError, match=r"setting spark\.sql\.warehouse\.dir cannot be set to elsewhere"):  # noqa: SIM117
        with session_settings(spark, settings):
            pytest.fail("the settings were accepted")
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_misspelled_setting_is_noted(flow):
    flow.source("lines", "text")
    flow.steps("""
        copy:
          layer: bronze
          reads: {lines: {source: lines}}
          writes: {table: copied}
          settings: {spark.sql.shuffle.partition: 3, spark.sql.shuffle.partitions: 3}
        """)
    (note,) = runner.check_pipelines(flow.spark, flow.bundle())
    assert note.endswith(
        "no setting spark.sql.shuffle.partition and ignores it; did you mean spark.sql.shuffle.partitions?"
    )


def test_settings_that_spark_does_not_list_are_not_noted(spark):
    """Spark and Delta know the first one, and read the others by their prefixes; the last one is not Spark's."""
    settings = [
        "spark.databricks.delta.schema.autoMerge.enabled",
        "spark.databricks.delta.properties.defaults.logRetentionDuration",
        "spark.sql.streaming.stateStore.rocksdb.compactOnCommit",
        "spark.sql.catalog.lake",
        "spark.headrace.test",
    ]
    assert misspelled_settings(spark, settings) == []
    delta = misspelled_settings(spark, ["spark.databricks.delta.schema.automerge.enabled"])
    assert "did you mean spark.databricks.delta.schema.autoMerge.enabled?" in delta[0]
