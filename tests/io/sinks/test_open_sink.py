"""Every kind of sink that one step can write alone, and the tables that are made for it."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.config.models import Environment, LocalEngine, Sink, Step, Tables
from headrace.io.sinks import open_sink, table_sink

LINES = "{layer: bronze, reads: {lines: {source: lines}}"


def test_each_kind_of_sink_gets_the_rows(flow, capsys):
    flow.source("lines", "text")
    flow.feed("lines", "one", "two", file="day=1/a.txt")
    flow.steps(f"""
        memory: {LINES}, writes: {{memory: remembered}}}}
        folder: {LINES}, writes: {{folder: out, format: json, options: {{compression: none}}}}}}
        console: {LINES}, writes: {{console: true}}}}
        table: {LINES}, writes: {{table: lines, partition_by: [day]}}}}
        replaced: {LINES}, writes: {{table: last, mode: replace, cluster_by: [value]}}}}
        """)
    assert {one.step.name: one.uses_spark_sink for one in flow.rehearse()} == {
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
    ("native", "keys", "judged"),
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
def test_sparks_own_sink_is_taken_where_it_suffices_and_is_not_slower(native, keys, judged):
    step = Step(name="s", layer="bronze", reads={}, **keys)
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints="none"
    )
    assert open_sink.uses_spark_sink(step, environment, has_verdicts=judged) is native
    if step.writes[0].mode == "append" and len(step.writes) == 1 and not step.row_wise:
        named = environment.model_copy(update={"tables": Tables(catalog="main", schema="shop")})
        assert open_sink.uses_spark_sink(step, named, has_verdicts=judged) is not judged


def test_tables_are_made_as_far_as_they_are_needed(spark, tmp_path):
    environment = Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root=str(tmp_path)), checkpoints="none"
    )
    writes = [Sink(table="clustered", cluster_by=["n"]), Sink(table="plain"), Sink(console=True)]
    step = Step(name="s", layer="bronze", reads={}, writes=writes)
    schema = spark.createDataFrame([], "n INT").schema
    table_sink.create_tables(spark, step, environment, schema, with_quarantine=False, only_needed=True)
    assert {file.name for file in tmp_path.iterdir()} == {"clustered"}
    table_sink.create_tables(spark, step, environment, schema, with_quarantine=True)
    assert {file.name for file in tmp_path.iterdir()} == {"clustered", "plain", "clustered_quarantine"}
    columns = [field.name for field in DeltaTable(str(tmp_path / "clustered_quarantine")).schema().fields]
    assert columns == ["raw", "reasons", "position", "step", "batch", "quarantined_at"]
