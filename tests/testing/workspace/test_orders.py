"""This repository's own wheel and bundle in a workspace: uploaded as they are, run by the job, rows counted."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from databricks.sdk import WorkspaceClient
from deltalake import DeltaTable

from headrace.testing.workspace import LocalWorkspace
from headrace_shop.sample import make_sample
from processes import ROOT
from workspaces import create, end_of, job, start, task_of

RELEASE = "/Workspace/Shared/shop/releases/1"
STAGING = """\
engine: {kind: databricks}
tables: {catalog: staging, schema: shop}
checkpoints: /Volumes/staging/shop/checkpoints
trigger: available_now
sources:
  orders: {kind: files, format: json, path: /Volumes/staging/shop/data/orders}
  customers: {kind: files, format: csv, path: /Volumes/staging/shop/data/customers, options: {header: true}}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = place.glob("*.whl")
    return built


def upload(client: WorkspaceClient, path: str, content: bytes) -> None:
    client.workspace.mkdirs(path.rpartition("/")[0])
    client.api_client.do("POST", f"/api/2.0/workspace-files/import-file{path}", data=content)


def test_the_orders_pipeline_runs_layer_by_layer(wheel: Path, tmp_path: Path) -> None:
    sample = make_sample(tmp_path / "data", orders=300, customers=20, files=3, pace=10)
    with LocalWorkspace(tmp_path / "workspace") as workspace:
        client = workspace.client()
        library = f"{RELEASE}/wheels/{wheel.name}"
        upload(client, library, wheel.read_bytes())
        for file in (*(ROOT / "conf").rglob("*.yml"), ROOT / "databricks.yml", *(ROOT / "resources").glob("*.yml")):
            content = STAGING.encode() if file.name == "staging.yml" else file.read_bytes()
            upload(client, f"{RELEASE}/{file.relative_to(ROOT).as_posix()}", content)
        for name, source in (("orders", sample.orders), ("customers", sample.customers)):
            client.files.create_directory(f"/Volumes/staging/shop/data/{name}")
            for file in source.glob("*"):
                with file.open("rb") as content:
                    client.files.upload(f"/Volumes/staging/shop/data/{name}/{file.name}", content)

        run = start(client, create(client, _layers(library)))
        result = end_of(client, run)
        told = client.jobs.get_run(run)
        outputs = {key: client.jobs.get_run_output(task_of(told, key).run_id) for key in ("bronze", "silver", "gold")}
        assert result == "SUCCESS", outputs
        assert "bronze_orders" in (outputs["bronze"].logs or "")

        rows = Counter()
        for table in ("bronze_orders", "silver_orders", "gold_revenue"):
            place = workspace.directory / "tables" / "staging" / "shop" / table
            rows[table] = DeltaTable(str(place)).to_pyarrow_table().num_rows
        assert rows["bronze_orders"] == rows["silver_orders"] > 250
        assert rows["gold_revenue"] > 0
        assert (workspace.directory / "Volumes/staging/shop/checkpoints/orders/bronze_orders").is_dir()
        conf = workspace.directory / f"{RELEASE[1:]}/conf/staging.yml"
        assert yaml.safe_load(conf.read_text())["tables"] == {"catalog": "staging", "schema": "shop"}


def _layers(library: str) -> dict[str, object]:
    definition = job("bronze", "silver", "gold")
    for task, before in zip(definition["tasks"], (None, "bronze", "silver"), strict=True):
        task["libraries"] = [{"whl": library}]
        task["python_wheel_task"] |= {
            "package_name": "headrace",
            "named_parameters": {"pipeline": "orders", "env": "staging", "conf": f"{RELEASE}/conf"},
        }
        if before:
            task["depends_on"] = [{"task_key": before}]
    return definition
