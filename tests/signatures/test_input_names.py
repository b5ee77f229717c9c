"""The name of an input in the step has no meaning of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headrace.signatures.changes import Verdict
from headrace.signatures.compare import compare
from headrace.signatures.compute import compute_signature
from headrace.signatures.empty_inputs import empty_static, empty_stream
from signature_queries import CUSTOMER, GOLD, ORDER


@pytest.fixture
def signature(spark, tmp_path):
    def compute(stream="orders", static="customers", table="table orders"):
        orders = empty_stream(spark, stream, StructType.fromDDL(ORDER), str(tmp_path / "empty"))
        customers = empty_static(spark, static, StructType.fromDDL(CUSTOMER), str(tmp_path / "empty"))
        rows = orders.withWatermark("at", "1 hour").where("n > 1").dropDuplicates(["id", "at"])
        rows = rows.join(customers, "customer").select("id", F.upper("country").alias("country"))
        reads = {stream: {"kind": "table", "name": table}, static: {"kind": "table", "name": "table customers"}}
        return compute_signature(rows, output_mode="append", inputs=reads, sinks=[GOLD])

    return compute


def test_renamed_input_is_no_change(signature):
    renamed = signature("rows", "orders")
    assert renamed != signature()
    assert compare(signature(), renamed) == compare(renamed, signature()) == ()


def test_renamed_input_that_reads_another_table_is_one_change(signature):
    (change,) = compare(signature(), signature("rows", table="table rows"))
    assert (change.path, change.verdict) == ("sources[0].name", Verdict.NEEDS_NEW_GENERATION)
    assert change.sentence.startswith("input rows reads table orders → table rows: ")


def test_names_are_matched_by_position(signature):
    old = signature()
    two = replace(old, sources=(*old.sources, replace(old.sources[0], input="others")))
    assert [change.path for change in compare(old, two)] == ["sources"]
