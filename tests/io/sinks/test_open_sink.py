"""Each kind of sink as the only sink of a step, and the choice between Spark's own sink and the batch writer."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.config.models import Environment, LocalEngine, Sink, Step, Tables
from headrace.io.sinks import open_sink

LINES = "{layer: bronze, reads: {lines: {source: lines}}"


def test_each_kind_of_sink_writes_the_rows(flow, capsys):
    flow.source("lines", "text")
    flow.feed("lines", "one", "two", file="day=1/a.txt")
    flow.steps(f"""
        memory: {LINES}, writes: {{memory: remembered}}}}
        folder: {LINES}, writes: {{folder: out, format: json, options: {{compression: none}}}}}}
        console: {LINES}, writes: {{console: true}}}}
        table: {LINES}, writes: {{table: lines, partition_by: [day]}}}}
        replaced: {LINES}, writes: {{table: last, mode: replace, cluster_by: [value]}}}}
        """)
    assert {step.step.name: step.uses_spark_sink for step in flow.rehearse()} == {
        "memory": True,
        "folder": True,
        "console": True,
        "table": False,
        "replaced": False,
    }
    flow.run()
    assert [row["value"] for row in flow.spark.table("remembered").collect()] == ["one", "two"]
    written = [file.read_text() for file in (flow.directory / "folders" / "out").glob("*.json")]
    assert sorted("".join(written).splitlines()) == ['{"value":"one","day":1}', '{"value":"two","day":1}']
    printed = capsys.readouterr().out
    assert printed.startswith("batch 0\n")
    assert "|two  |1  |" in printed
    assert sorted(row["value"] for row in flow.read("lines")) == ["one", "two"]
    assert DeltaTable(str(flow.directory / "tables" / "lines")).metadata().partition_columns == ["day"]
    assert sorted(row["value"] for row in flow.read("last")) == ["one", "two"]


@pytest.mark.parametrize(
    ("expected", "keys", "has_verdicts"),
    [
        (False, {"writes": [Sink(table="t")]}, False),
        (True, {"writes": [Sink(table="t")], "output": "complete"}, False),
        (True, {"writes": [Sink(topic="t")]}, False),
        (False, {"writes": [Sink(table="t")]}, True),
        (False, {"writes": [Sink(table="t"), Sink(table="u")]}, False),
        (False, {"writes": [Sink(table="t", mode="upsert", keys=["id"], sequence="at")]}, False),
        (False, {"writes": [Sink(table="t")], "transform": "shop:f", "row_wise": True}, False),
        (False, {"writes": [Sink(table="t")], "transform": "shop:f"}, False),
    ],
)
def test_sparks_own_sink_is_used_where_it_suffices_and_is_not_slower(expected, keys, has_verdicts):
    step = Step(name="s", layer="bronze", reads={}, **keys)
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints="none"
    )
    assert open_sink.uses_spark_sink(step, environment, has_verdicts=has_verdicts) is expected
    if step.writes[0].mode == "append" and len(step.writes) == 1 and not step.row_wise:
        with_catalog = environment.model_copy(update={"tables": Tables(catalog="main", schema="shop")})
        assert open_sink.uses_spark_sink(step, with_catalog, has_verdicts=has_verdicts) is not has_verdicts
