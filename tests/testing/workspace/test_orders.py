"""The wheel and the bundle of this repository in a workspace: upload them, run them as jobs, count the rows."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from databricks.sdk import WorkspaceClient
from deltalake import DeltaTable

from headrace.testing.workspace import LocalWorkspace
from headrace_shop.sample import make_sample
from processes import ROOT, wait_until
from workspaces import create, end_of, job, reset, start

RELEASE = "/Workspace/Shared/shop/releases/1"
ENVIRONMENT = """\
engine: {{kind: databricks}}
tables: {{catalog: {name}, schema: shop}}
checkpoints: /Volumes/{name}/shop/checkpoints
trigger: {trigger}
sources:
  orders: {{kind: files, format: json, path: /Volumes/{name}/shop/data/orders}}
  customers: {{kind: files, format: csv, path: /Volumes/{name}/shop/data/customers, options: {{header: true}}}}
values: {{user: everybody}}
"""
TRIGGERS = {"staging": "available_now", "prod": "{every: 1 second}"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorkspace]:
    """A workspace with the uploaded release, and sample data in the volumes of two environments."""
    directory = tmp_path_factory.mktemp("orders")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    sample = make_sample(directory / "data", orders=300, customers=20, files=3, pace=10)
    with LocalWorkspace(directory / "workspace") as running:
        client = running.client()
        upload(client, f"{RELEASE}/wheels/{wheel.name}", with_marker(wheel))
        for file in (*(ROOT / "conf").rglob("*.yml"), ROOT / "databricks.yml", *(ROOT / "resources").glob("*.yml")):
            content = file.read_bytes()
            if file.stem in TRIGGERS:
                content = ENVIRONMENT.format(name=file.stem, trigger=TRIGGERS[file.stem]).encode()
            upload(client, f"{RELEASE}/{file.relative_to(ROOT).as_posix()}", content)
        for name, source in (("orders", sample.orders), ("customers", sample.customers)):
            for environment in TRIGGERS:
                volume = f"/Volumes/{environment}/shop/data/{name}"
                client.files.create_directory(volume)
                for file in source.glob("*"):
                    with file.open("rb") as content:
                        client.files.upload(f"{volume}/{file.name}", content)
        yield running


def with_marker(wheel: Path) -> bytes:
    """Return the wheel with a module of entry points that prints where it is imported from."""
    content = io.BytesIO()
    with zipfile.ZipFile(wheel) as original, zipfile.ZipFile(content, "w") as changed:
        for name in original.namelist():
            marker = b'\nprint("imported from", __file__)\n' if name == "headrace/entry_points.py" else b""
            changed.writestr(name, original.read(name) + marker)
    return content.getvalue()


def upload(client: WorkspaceClient, path: str, content: bytes) -> None:
    client.workspace.mkdirs(path.rpartition("/")[0])
    client.api_client.do("POST", f"/api/2.0/workspace-files/import-file{path}", data=content)


def orders_job(workspace: LocalWorkspace, environment: str, **settings: Any) -> dict[str, Any]:
    """Return the definition of a job with the wheel and the configuration of the release."""
    definition = job("run", **settings)
    (wheel,) = (workspace.directory / RELEASE[1:] / "wheels").iterdir()
    (task,) = definition["tasks"]
    task["libraries"] = [{"whl": f"{RELEASE}/wheels/{wheel.name}"}]
    parameters = {"pipeline": "orders", "env": environment, "conf": f"{RELEASE}/conf"}
    task["python_wheel_task"] = {"package_name": "headrace", "entry_point": "run", "named_parameters": parameters}
    return definition


def count_rows(workspace: LocalWorkspace, environment: str, table: str) -> int:
    path = str(workspace.directory / "tables" / environment / "shop" / table)
    return DeltaTable(path).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(path) else 0


def run_directory(workspace: LocalWorkspace, run: int) -> Path:
    (task,) = workspace.client().jobs.get_run(run).tasks or []
    return workspace.directory / "runs" / str(task.run_id)


@pytest.mark.full
def test_pipeline_processes_the_available_data(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, orders_job(workspace, "staging")))
    result = end_of(client, run)
    output = client.jobs.get_run_output(run)
    assert result == "SUCCESS", output
    assert "bronze_orders" in (output.logs or "")
    assert count_rows(workspace, "staging", "bronze_orders") == count_rows(workspace, "staging", "silver_orders") > 250
    assert count_rows(workspace, "staging", "gold_revenue") > 0
    assert (workspace.directory / "Volumes/staging/shop/checkpoints/orders/bronze_orders").is_dir()
    conf = workspace.directory / RELEASE[1:] / "conf" / "staging.yml"
    assert yaml.safe_load(conf.read_text())["tables"] == {"catalog": "staging", "schema": "shop"}
    assert f"imported from {run_directory(workspace, run)}/site/headrace/entry_points.py" in (output.logs or "")


@pytest.mark.full
def test_cancelled_continuous_run_ends_between_batches(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, orders_job(workspace, "prod", continuous={"pause_status": "UNPAUSED"}))
    (run,) = [active.run_id or 0 for active in client.jobs.list_runs(job_id=number)]
    wait_until(lambda: count_rows(workspace, "prod", "gold_revenue") > 0, "rows in the last table")
    reset(client, number, orders_job(workspace, "prod", continuous={"pause_status": "PAUSED"}))
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    assert count_rows(workspace, "prod", "bronze_orders") == count_rows(workspace, "prod", "silver_orders") > 250
    assert json.loads((run_directory(workspace, run) / "result.json").read_text()) == {"error": "", "trace": ""}
