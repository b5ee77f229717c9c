"""Inputs as DataFrames: which rows are checked, watermarks, options, and errors that name what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.models import RateSource, Read, Rule, Tables, Watermark
from headrace.errors import ConfigurationError, DataError
from headrace.expectations import verdict
from headrace.io.sources import open_input
from inputs import environment, files

PAIR = "id STRING, n INT"


def test_only_rows_that_can_fail_a_check_have_a_verdict(spark, tmp_path):
    """Rows that cannot be malformed and have no rule can use Spark's own sink; rules and watermarks always apply."""
    spark.createDataFrame([("a", 1)], PAIR).write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "text").mkdir()
    sources = environment(
        parquet=files(tmp_path / "parquet", "parquet"),
        text=files(tmp_path / "text", "text"),
        rate=RateSource(kind="rate", rows_per_second=5),
        json=files(tmp_path / "text"),
    )

    def has_verdict(source, **keys):
        return verdict.has_verdict(open_input.open_input(spark, Read(source=source, **keys), sources))

    assert not has_verdict("parquet", schema_=PAIR)
    assert has_verdict("parquet", schema_=PAIR, expect=[Rule(not_null=["id"])])
    assert not has_verdict("text")
    assert has_verdict("text", expect=[Rule(matches={"value": "a+"})])
    assert not has_verdict("rate")
    assert has_verdict("rate", expect=[Rule(between={"value": [0, 9]})])
    assert has_verdict("rate", watermark=Watermark(column="timestamp", delay="1 minute"))
    assert has_verdict("json", schema_=PAIR)


def test_watermark_is_set_on_the_checked_event_time(spark, tmp_path):
    read = Read(source="it", schema_="id STRING, at TIMESTAMP", watermark=Watermark(column="at", delay="10 minutes"))
    rows = open_input.open_input(spark, read, environment(it=files(tmp_path)))
    assert "EventTimeWatermark" in rows._jdf.queryExecution().analyzed().toString()


def test_options_of_the_read_override_those_of_the_source(spark, tmp_path):
    Path(tmp_path / "1.csv").write_text("a;1\n")
    read = Read(source="it", schema_=PAIR, options={"sep": ";"})
    rows = open_input.open_input(spark, read, environment(it=files(tmp_path, "csv", sep=",")))
    query = rows.writeStream.format("memory").queryName("own_options").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [tuple(row)[:2] for row in spark.table("own_options").collect()] == [("a", 1)]


def test_invalid_option_of_a_table_is_an_error(spark, tmp_path):
    tables = environment().model_copy(update={"tables": Tables(root=str(tmp_path))})
    spark.range(1).write.format("delta").save(str(tmp_path / "orders"))
    with pytest.raises(DataError, match="table 'orders' cannot be read") as error:
        open_input.open_input(spark, Read(table="orders", static=True, options={"versionAsOf": 99}), tables)
    assert error.value.problems[0].fix == "correct the input's options"


def test_missing_directory_is_an_error(spark, golden):
    sources = environment(it=files("/nowhere/orders"))
    with pytest.raises(DataError) as error:
        open_input.open_input(spark, Read(source="it", schema_=PAIR), sources)
    golden("sources/missing_directory", str(error.value))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("watermark", {"watermark": Watermark(column="when", delay="1 minute")}),
        ("rule", {"expect": [Rule(not_null=["idd"])]}),
    ],
)
def test_missing_column_is_an_error(spark, tmp_path, golden, name, keys):
    with pytest.raises(ConfigurationError) as error:
        open_input.open_input(spark, Read(source="it", schema_=PAIR, **keys), environment(it=files(tmp_path)))
    golden(f"sources/missing_column_{name}", str(error.value))


def test_missing_table_is_an_error(spark, tmp_path, golden):
    tables = environment().model_copy(update={"tables": Tables(root=str(tmp_path))})
    with pytest.raises(DataError) as error:
        open_input.open_input(spark, Read(table="orders"), tables)
    golden("sources/missing_table", str(error.value).replace(str(tmp_path), "TABLES"))
