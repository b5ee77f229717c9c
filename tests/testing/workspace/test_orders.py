"""This repository's own wheel and bundle in a workspace: uploaded as they are, run by jobs, rows counted."""

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
    """The release uploaded, and sample data in the volumes of two environments."""
    place = tmp_path_factory.mktemp("orders")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    sample = make_sample(place / "data", orders=300, customers=20, files=3, pace=10)
    with LocalWorkspace(place / "workspace") as running:
        client = running.client()
        upload(client, f"{RELEASE}/wheels/{wheel.name}", marked(wheel))
        for file in (*(ROOT / "conf").rglob("*.yml"), ROOT / "databricks.yml", *(ROOT / "resources").glob("*.yml")):
            content = file.read_bytes()
            if file.stem in TRIGGERS:
                content = ENVIRONMENT.format(name=file.stem, trigger=TRIGGERS[file.stem]).encode()
            upload(client, f"{RELEASE}/{file.relative_to(ROOT).as_posix()}", content)
        for name, source in (("orders", sample.orders), ("customers", sample.customers)):
            for environment in TRIGGERS:
                directory = f"/Volumes/{environment}/shop/data/{name}"
                client.files.create_directory(directory)
                for file in source.glob("*"):
                    with file.open("rb") as opened:
                        client.files.upload(f"{directory}/{file.name}", opened)
        yield running


def marked(wheel: Path) -> bytes:
    """The wheel, whose entry points say where they were imported from."""
    content = io.BytesIO()
    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(content, "w") as changed:
        for name in built.namelist():
            mark = b'\nprint("imported from", __file__)\n' if name == "headrace/entry_points.py" else b""
            changed.writestr(name, built.read(name) + mark)
    return content.getvalue()


def upload(client: WorkspaceClient, path: str, content: bytes) -> None:
    client.workspace.mkdirs(path.rpartition("/")[0])
    client.api_client.do("POST", f"/api/2.0/workspace-files/import-file{path}", data=content)


def orders(workspace: LocalWorkspace, environment: str, **settings: Any) -> dict[str, Any]:
    """The job, with the release's wheel and configuration."""
    definition = job("run", **settings)
    (wheel,) = (workspace.directory / RELEASE[1:] / "wheels").iterdir()
    (task,) = definition["tasks"]
    task["libraries"] = [{"whl": f"{RELEASE}/wheels/{wheel.name}"}]
    parameters = {"pipeline": "orders", "env": environment, "conf": f"{RELEASE}/conf"}
    task["python_wheel_task"] = {"package_name": "headrace", "entry_point": "run", "named_parameters": parameters}
    return definition


def rows(workspace: LocalWorkspace, environment: str, table: str) -> int:
    place = str(workspace.directory / "tables" / environment / "shop" / table)
    return DeltaTable(place).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(place) else 0


def directory_of(workspace: LocalWorkspace, run: int) -> Path:
    (task,) = workspace.client().jobs.get_run(run).tasks or []
    return workspace.directory / "runs" / str(task.run_id)


def test_the_pipeline_runs_over_what_is_there(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, orders(workspace, "staging")))
    result = end_of(client, run)
    output = client.jobs.get_run_output(run)
    assert result == "SUCCESS", output
    assert "bronze_orders" in (output.logs or "")
    assert rows(workspace, "staging", "bronze_orders") == rows(workspace, "staging", "silver_orders") > 250
    assert rows(workspace, "staging", "gold_revenue") > 0
    assert (workspace.directory / "Volumes/staging/shop/checkpoints/orders/bronze_orders").is_dir()
    conf = workspace.directory / RELEASE[1:] / "conf" / "staging.yml"
    assert yaml.safe_load(conf.read_text())["tables"] == {"catalog": "staging", "schema": "shop"}
    assert f"imported from {directory_of(workspace, run)}/site/headrace/entry_points.py" in (output.logs or "")


def test_a_continuous_run_ends_at_a_batch_when_it_is_cancelled(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, orders(workspace, "prod", continuous={"pause_status": "UNPAUSED"}))
    (run,) = [each.run_id or 0 for each in client.jobs.list_runs(job_id=number)]
    wait_until(lambda: rows(workspace, "prod", "gold_revenue") > 0, "rows in the last table")
    reset(client, number, orders(workspace, "prod", continuous={"pause_status": "PAUSED"}))
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    assert rows(workspace, "prod", "bronze_orders") == rows(workspace, "prod", "silver_orders") > 250
    assert json.loads((directory_of(workspace, run) / "result.json").read_text()) == {"error": "", "trace": ""}
