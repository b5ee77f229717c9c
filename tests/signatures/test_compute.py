"""Signatures are the same in every process, and those of the reference pipeline say what its steps compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

from headrace.signatures import compute, incremental_plan, stateful_operators
from headrace.signatures.compare import compare
from headrace.signatures.signature import Operator
from query_changes import count_rows
from reference_signatures import reference_queries, reference_signature
from signature_queries import aggregate, empty_inputs, signature_of

TESTS = Path(__file__).parents[1]

USER_MODULE = """
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

COUNTRIES = {"DE", "FR", "IT", "ES", "NL", "BE"}


def normalise(text):
    trimmed = text.strip()
    return trimmed.upper() if trimmed in COUNTRIES else trimmed


def scale(factor, offset):
    def scaled(value):
        return value * factor + offset

    return F.udf(scaled, "double")


def total(values):
    return values * 2


def count(key, frames, state):
    rows = sum(map(len, frames))
    yield pd.DataFrame({"customer": [key[0]], "rows": [rows]})


class Counter(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "count INT")

    def handleInputRows(self, key, rows, timers):
        for frame in rows:
            yield pd.DataFrame({"customer": [key[0]]})

    def close(self):
        pass


QUERIES = {
    "plain": lambda i: i.orders.select("id", F.rand().alias("r"), F.uuid().alias("u")),
    "udf": lambda i: i.orders.select(F.udf(normalise)("region").alias("r"), scale(2, 3)("amount").alias("s")),
    "pandas_udf": lambda i: i.orders.select(F.pandas_udf(total, "double")("amount").alias("t")),
    "window": lambda i: i.timed.groupBy(F.window("at", "15 minutes"), "region").agg(F.sum("amount")),
    "session": lambda i: i.timed.groupBy(F.session_window("at", "5 minutes"), "region").count(),
    "dedup": lambda i: i.timed.dropDuplicatesWithinWatermark(["id", "region"]),
    "all_columns": lambda i: i.timed.dropDuplicates(),
    "join": lambda i: i.timed.join(i.timed_returns, F.expr("id = order_id AND returned_at > at")),
    "self_join": lambda i: i.timed.alias("l").join(i.timed.alias("r"), F.expr("l.id = r.id AND l.at < r.at")),
    "static": lambda i: i.orders.join(F.broadcast(i.customers), "customer", "left"),
    "higher_order": lambda i: i.orders.select(F.transform(F.array("amount"), lambda x: x + 1).alias("x")),
    "state": lambda i: i.orders.groupBy("customer").applyInPandasWithState(
        count, "customer STRING, rows INT", "n INT", "update", GroupStateTimeout.NoTimeout
    ),
    "processor": lambda i: i.orders.groupBy("customer").transformWithStateInPandas(
        Counter(), "customer STRING", "Update", "None"
    ),
}
"""
# The same code, written differently.
REWRITTEN = (
    USER_MODULE.replace("trimmed", "clean")
    .replace("def normalise(text):", 'def normalise(text: str) -> str:\n    """Return a code."""\n    # A comment.')
    .replace("factor", "z_factor")
    .replace("for frame in rows", "for batch in rows")
    .replace('"DE", "FR"', '"FR", "DE"')
    .replace("class Counter(StatefulProcessor):", 'class Counter(StatefulProcessor):\n    """Count."""\n')
)

SCRIPT = """
import json, sys
from pathlib import Path
from headrace.config.models import LocalEngine
from headrace.spark.session import close_session, open_session

directory, tests, module = Path.cwd(), *sys.argv[1:]
sys.path[:0] = [tests, module]
spark = open_session(LocalEngine(kind="local"), name="signatures", directory=directory / "spark")
from test_compute_signatures import all_signatures

signatures = all_signatures(spark, directory)
Path("signatures.json").write_text(json.dumps(signatures))
close_session(spark)
"""

SIGNATURES = """
from reference_signatures import reference_queries, reference_signature
from signature_queries import empty_inputs, signature_of
from user_queries import QUERIES

def all_signatures(spark, directory):
    inputs = empty_inputs(spark, directory)
    signatures = {name: signature_of(query(inputs)).to_json() for name, query in QUERIES.items()}
    for step, result in reference_queries(spark, str(directory / "reference")):
        signatures[step.name] = reference_signature(step, result).to_json()
    return signatures
"""


def test_signatures_are_the_same_in_another_process(spark, tmp_path, monkeypatch):
    """The other process has another hash seed and another working directory, and its code is written differently."""
    for name, source in (("here", USER_MODULE), ("there", REWRITTEN)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "user_queries.py").write_text(source)
        (tmp_path / name / "test_compute_signatures.py").write_text(SIGNATURES)
    seed = "77" if os.environ.get("PYTHONHASHSEED") != "77" else "78"
    work = tmp_path / "work"
    work.mkdir()
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(TESTS), str(tmp_path / "there")],
        cwd=work,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    there = json.loads((work / "signatures.json").read_text())
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    try:
        from test_compute_signatures import all_signatures  # type: ignore[import-not-found]

        here = all_signatures(spark, tmp_path)
    finally:
        for name in ("user_queries", "test_compute_signatures"):
            sys.modules.pop(name, None)
    assert list(here) == list(there)
    assert {name: signature for name, signature in here.items() if signature != there[name]} == {}
    assert str(tmp_path) not in json.dumps(here)
    assert max(len(json.dumps(signature)) for signature in here.values()) < 2000


@pytest.fixture(scope="module")
def reference(spark, tmp_path_factory):
    queries = reference_queries(spark, str(tmp_path_factory.mktemp("reference")))
    return {step.name: reference_signature(step, result) for step, result in queries}


def test_reference_pipeline_deduplicates(reference):
    signature = reference["bronze_orders"]
    (operator,) = signature.stateful
    assert operator.kind == "dropDuplicatesWithinWatermark"
    assert [(key.name, key.text) for key in operator.keys] == [("order_id", "orders.order_id")]
    assert [(mark.column, mark.delay) for mark in signature.watermarks] == [("orders.ordered_at", "10 minutes")]
    assert signature.sources[0].name == "source orders"


def test_reference_pipeline_joins_a_static_table(reference):
    signature = reference["silver_orders"]
    (join,) = signature.joins
    assert join.properties == {"type": "left", "sides": "stream with static"}
    assert [key.text for key in join.keys] == ["(orders.customer_id = customers.customer_id)"]
    assert [item.name for item in (*signature.sources, *signature.static_inputs)] == [
        "table bronze_orders",
        "table customers",
    ]
    assert signature.stateful == ()


def test_reference_pipeline_aggregates_windows(reference):
    signature = reference["gold_revenue"]
    (operator,) = signature.stateful
    assert [key.text for key in operator.keys] == ["window(orders.ordered_at, 1 minute)", "orders.country"]
    assert [(value.name, value.text) for value in operator.values] == [
        ("orders", "count(1)"),
        ("revenue", "sum(orders.amount)"),
    ]
    assert operator.state_columns != ()
    assert [column.name for column in signature.output] == [
        "country",
        "orders",
        "revenue",
        "window_end",
        "window_start",
    ]
    assert len(json.dumps(signature.to_json())) < 1600


def test_sinks_are_stored_as_json_values(spark, tmp_path):
    orders = empty_inputs(spark, tmp_path).orders
    signature = signature_of(orders, sinks=[{"name": "t", "kind": "table", "keys": ("a",)}])
    assert signature.sinks == ({"kind": "table", "name": "t", "keys": ["a"]},)


def test_patch_version_of_python_is_not_part_of_a_signature(spark, tmp_path, monkeypatch):
    frame = aggregate("sum(amount)")(empty_inputs(spark, tmp_path))
    before = signature_of(frame)
    major, minor, patch, *_ = sys.version_info
    monkeypatch.setattr(compute, "sys", SimpleNamespace(version_info=(major, minor, patch + 1, "final", 0)))
    assert signature_of(frame) == before
    monkeypatch.setattr(compute, "sys", SimpleNamespace(version_info=(major, minor + 1, 0, "final", 0)))
    assert signature_of(frame) != before


def test_other_internals_of_spark_only_cost_the_state_columns(spark, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise Py4JError("Constructor IncrementalExecution([…]) does not exist")

    inputs = empty_inputs(spark, tmp_path)
    before, after = (aggregate(f"{name}(amount)")(inputs) for name in ("sum", "avg"))
    known = signature_of(before)
    monkeypatch.setattr(incremental_plan, "plan_batch", fail)
    unknown = signature_of(before)
    assert unknown == replace(known, stateful=(replace(known.stateful[0], state_columns=()),))
    assert compare(known, unknown) == ()
    assert [change.path for change in compare(known, signature_of(after))] == ["stateful[0].aggregates", "output"]


def test_state_function_of_another_spark_is_known_by_its_kind(spark, tmp_path, monkeypatch):
    def fail(expression):
        raise Py4JError("Method command([]) does not exist")

    frame = count_rows()(empty_inputs(spark, tmp_path))
    assert signature_of(frame, mode="update").stateful[0].properties.keys() > {"code", "state", "timeout"}
    monkeypatch.setattr(stateful_operators, "load_function", fail)
    assert signature_of(frame, mode="update").stateful == (Operator("applyInPandasWithState"),)


def test_rewritten_module_differs_in_all_that_must_have_no_effect():
    for text in ("clean", "A comment", "Return a code", "z_factor", "for batch in rows", '"FR", "DE"', '"""Count."""'):
        assert text in REWRITTEN
        assert text not in USER_MODULE
