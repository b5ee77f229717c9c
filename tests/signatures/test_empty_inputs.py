"""Empty inputs stand in for sources and tables: with their schema and name, and without rows."""

from __future__ import annotations

from pyspark.sql.types import StructType

from headrace.signatures.empty_inputs import empty_static, empty_stream

SCHEMA = "id STRING NOT NULL, at TIMESTAMP, `a b` STRUCT<x: INT>, tags MAP<STRING, ARRAY<DOUBLE>>"


def test_stream_and_static_input(spark, tmp_path):
    schema = StructType.fromDDL(SCHEMA)
    directory = tmp_path / "new" / "empty"
    stream = empty_stream(spark, "orders", schema, str(directory))
    static = empty_static(spark, "customers", schema, str(directory))
    assert (stream.isStreaming, static.isStreaming) == (True, False)
    assert stream.dtypes == static.dtypes == [(field.name, field.dataType.simpleString()) for field in schema]
    assert static.collect() == []
    assert list(directory.iterdir()) == []
