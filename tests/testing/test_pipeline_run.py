"""run_pipeline, as users test with it: a bundle's pipeline in a directory of the test's own."""

from __future__ import annotations

import json

import pytest

from headrace.config.load import load_bundle
from headrace.config.models import FileSource, RateSource
from headrace.errors import ConfigurationError
from headrace.testing import run_pipeline
from headrace.testing.pipeline_run import Places

PIPELINE = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: orders, schema: "id STRING, n INT"}}
    writes: {table: landed}
  copy:
    layer: silver
    reads: {rows: {table: landed}}
    writes: {table: copied}
"""


def test_values_are_given_as_to_a_run(spark, write_bundle, tmp_path):
    root = write_bundle({"conf/pipelines/p.yml": PIPELINE})
    local = root / "conf" / "local.yml"
    local.write_text(local.read_text().replace("data/orders", '"${orders}"') + "values: {orders: {required: true}}\n")
    (root / "here").mkdir()
    (root / "here" / "1.json").write_text(json.dumps({"id": "a", "n": 1}) + "\n")
    run = run_pipeline(spark, root, "p", tmp_path / "place", values={"orders": "here"}, only=["land"])
    assert [tuple(row) for row in run.rows("landed")] == [("a", 1)]


def test_a_pipeline_runs_over_what_has_come_since(spark, write_bundle, tmp_path):
    root = write_bundle({"conf/pipelines/p.yml": PIPELINE})
    before = sorted(root.rglob("*"))
    data, place = tmp_path / "data", tmp_path / "place"
    data.mkdir()
    (data / "1.json").write_text(json.dumps({"id": "a", "n": 1}) + "\nno json\n")
    run = run_pipeline(spark, root, "p", place, sources={"orders": data})
    assert [tuple(row) for row in run.rows("copied")] == [("a", 1)]
    assert [row["raw"] for row in run.quarantine("landed")] == ["no json"]
    assert (run.total("land", "rows"), run.total("copy", "rows"), run.total("land", "late")) == (2, 1, 0)
    assert sorted(root.rglob("*")) == before

    (data / "2.json").write_text(json.dumps({"id": "b", "n": 2}) + "\n")
    again = run_pipeline(spark, root, "p", place, sources={"orders": data}, only=["land"])
    assert sorted(map(tuple, again.rows("landed"))) == [("a", 1), ("b", 2)]
    assert again.table("copied").count() == 1
    assert (again.total("land", "rows"), again.total("copy", "rows")) == (1, 0)


def test_places_are_put_into_a_bundle(write_bundle, tmp_path):
    root = write_bundle({})
    (root / "conf" / "local.yml").open("a").write("folders: {out: exports}\n")
    bundle = load_bundle(root)
    fast = RateSource(kind="rate", rows_per_second=500)
    moved = Places(tmp_path / "place", {"orders": tmp_path / "data", "ticks": fast, "new": fast}).put(bundle)
    environment = moved.environment
    assert (environment.tables.root, environment.checkpoints) == (
        f"{tmp_path}/place/tables",
        f"{tmp_path}/place/checkpoints",
    )
    assert environment.folders == {"out": f"{tmp_path}/place/folders/out"}
    assert environment.sources == {
        "orders": FileSource(kind="files", format="json", path=f"{tmp_path}/data"),
        "ticks": fast,
        "new": fast,
    }
    assert moved.directory.is_relative_to(tmp_path / "place")
    with pytest.raises(ConfigurationError, match="source 'ticks' is not one of files"):
        Places(tmp_path, {"ticks": tmp_path}).put(bundle)
