"""run_pipeline, which users call in tests: it runs a pipeline of a bundle in a temporary directory."""

from __future__ import annotations

import json

import pytest

from headrace.config.load import load_bundle
from headrace.config.models import FileSource, RateSource
from headrace.errors import ConfigurationError
from headrace.testing import run_pipeline
from headrace.testing.pipeline_run import relocate

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


def test_run_pipeline_accepts_values(spark, write_bundle, tmp_path):
    root = write_bundle({"conf/pipelines/p.yml": PIPELINE})
    local = root / "conf" / "local.yml"
    local.write_text(local.read_text().replace("data/orders", '"${orders}"') + "values: {orders: {required: true}}\n")
    (root / "input").mkdir()
    (root / "input" / "1.json").write_text(json.dumps({"id": "a", "n": 1}) + "\n")
    run = run_pipeline(spark, root, "p", tmp_path / "run", values={"orders": "input"}, only=["land"])
    assert [tuple(row) for row in run.rows("landed")] == [("a", 1)]


def test_second_run_processes_only_new_data(spark, write_bundle, tmp_path):
    root = write_bundle({"conf/pipelines/p.yml": PIPELINE})
    before = sorted(root.rglob("*"))
    data, directory = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    (data / "1.json").write_text(json.dumps({"id": "a", "n": 1}) + "\nnot json\n")
    run = run_pipeline(spark, root, "p", directory, sources={"orders": data})
    assert [tuple(row) for row in run.rows("copied")] == [("a", 1)]
    assert [row["raw"] for row in run.quarantine("landed")] == ["not json"]
    assert (run.total("land", "rows"), run.total("copy", "rows"), run.total("land", "late")) == (2, 1, 0)
    assert sorted(root.rglob("*")) == before

    (data / "2.json").write_text(json.dumps({"id": "b", "n": 2}) + "\n")
    second = run_pipeline(spark, root, "p", directory, sources={"orders": data}, only=["land"])
    assert sorted(map(tuple, second.rows("landed"))) == [("a", 1), ("b", 2)]
    assert second.table("copied").count() == 1
    assert (second.total("land", "rows"), second.total("copy", "rows")) == (1, 0)


def test_bundle_is_relocated(write_bundle, tmp_path):
    root = write_bundle({})
    (root / "conf" / "local.yml").open("a").write("folders: {out: exports}\n")
    bundle = load_bundle(root)
    fast = RateSource(kind="rate", rows_per_second=500)
    relocated = relocate(bundle, tmp_path / "run", {"orders": tmp_path / "data", "ticks": fast, "new": fast})
    environment = relocated.environment
    assert (environment.tables.root, environment.checkpoints) == (
        f"{tmp_path}/run/tables",
        f"{tmp_path}/run/checkpoints",
    )
    assert environment.folders == {"out": f"{tmp_path}/run/folders/out"}
    assert environment.sources == {
        "orders": FileSource(kind="files", format="json", path=f"{tmp_path}/data"),
        "ticks": fast,
        "new": fast,
    }
    assert relocated.run_files_directory.is_relative_to(tmp_path / "run")
    with pytest.raises(ConfigurationError, match="source 'ticks' is not a file source"):
        relocate(bundle, tmp_path, {"ticks": tmp_path})
