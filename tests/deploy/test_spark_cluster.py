"""Releases on plain Spark clusters: promotion from one cluster to another, and jobs and runs in a directory."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from clusters import SETTINGS, standalone
from deployments import commit, without_waiting
from headrace.cli import main
from headrace.config.databricks.job_definitions import Target
from headrace.deploy.deploy_state import DeployedJob, State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.deployed_jobs import start_job
from headrace.deploy.remote import Run
from headrace.deploy.spark_cluster import Cluster
from headrace.deploy.state_store import StateStore
from headrace.errors import DeploymentError
from headrace_shop.arrivals import CLEAN
from headrace_shop.sample import make_sample
from processes import copy_tree, wait_until
from workspaces import tiny_wheel

ENVIRONMENT = """\
engine: {{kind: spark, master: "{master}", releases: {directory}/releases}}
tables: {{root: {directory}/tables}}
checkpoints: {directory}/checkpoints
trigger: available_now
sources:
  orders: {{kind: files, format: json, path: {data}/orders}}
  customers: {{kind: files, format: csv, path: {data}/customers, options: {{header: true}}}}
values: {{user: everybody}}
"""
DATABRICKS = """\
bundle: {name: shop}
include: [resources/*.yml]
variables:
  spark_version: {default: 18.x-scala2.13}
  node_type: {default: i3.xlarge}
  workers: {default: 1}
  user: {default: everybody}
targets: {one: {}, two: {}}
"""


def headrace(*arguments: str, bundle: Path) -> Result:
    result = CliRunner().invoke(main, [*arguments, *without_waiting(arguments[0]), "-C", str(bundle)])
    assert result.exit_code == 0, result.output
    return result


def last_run_state(bundle: Path, environment: str) -> str:
    (job,) = json.loads(headrace("jobs", "--env", environment, "-o", "json", bundle=bundle).stdout)
    return str(job["last"]["result"] or job["last"]["phase"]) if job["last"] else ""


def wait_for_success(bundle: Path, environment: str) -> None:
    active = ("", "PENDING", "RUNNING")
    wait_until(lambda: last_run_state(bundle, environment) not in active, "the end of the run")
    output = headrace("logs", "orders", "--env", environment, bundle=bundle).output
    assert last_run_state(bundle, environment) == "SUCCESS", output


def release_hashes(directory: Path, environment: str) -> dict[str, str]:
    (release,) = (directory / "releases" / "shop" / environment / "releases").iterdir()
    return {
        file.relative_to(release).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in release.rglob("*")
        if file.is_file()
    }


def order_ids(directory: Path) -> list[str]:
    table = DeltaTable(str(directory / "tables" / "silver_orders")).to_pyarrow_table(columns=["order_id"])
    return sorted(table["order_id"].to_pylist())


@pytest.mark.full
def test_release_is_promoted_from_one_cluster_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)  # the runs use the code of the release, not of this tree
    bundle, one, two = copy_tree(tmp_path / "bundle"), tmp_path / "one", tmp_path / "two"
    for name in ("dev", "staging", "prod"):
        (bundle / "conf" / f"{name}.yml").unlink()
    (bundle / "databricks.yml").write_text(DATABRICKS)
    (bundle / ".gitignore").write_text("dist/\n__pycache__/\n")
    data = tmp_path / "data"
    make_sample(data, orders=200, customers=20, files=2, pace=10, mix=CLEAN)
    for directory in (one, two):
        directory.mkdir()
    with standalone(one) as first_master, standalone(two) as second_master:
        for directory, master in ((one, first_master), (two, second_master)):
            text = ENVIRONMENT.format(master=master, directory=directory, data=data)
            (bundle / "conf" / f"{directory.name}.yml").write_text(text + SETTINGS)
        commit(bundle)
        headrace("deploy", "--env", "one", "--yes", bundle=bundle)
        wait_for_success(bundle, "one")
        headrace("promote", "--from", "one", "--to", "two", "--yes", bundle=bundle)
        wait_for_success(bundle, "two")
        output = headrace(
            "reset", "orders", "--step", "silver_orders", "--downstream", "--env", "one", "--yes", bundle=bundle
        )
        assert "silver_orders: checkpoint generation 1 → 2" in output.output
    assert release_hashes(one, "one") == release_hashes(two, "two")
    assert len(order_ids(one)) == 200
    assert order_ids(one) == order_ids(two)
    assert "Registered app" in (two / "master.log").read_text()
    assert "nothing would change" in headrace("plan", "--env", "two", bundle=bundle).output


# ── Jobs and runs without Spark ───────────────────────────────────────────────────────────────────────

TASK_CODE = """\
import pathlib, signal, sys, time
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
def run():
    pathlib.Path('started').write_text('')
    while not stop: time.sleep(0.01)
def good(): print('good')
def bad(): raise OSError('broken')
def exits(): sys.exit(3)
"""


def body(wheel: Path, *entry_points: str, **settings: object) -> dict[str, object]:
    tasks = [
        {
            "task_key": entry_point,
            "libraries": [{"whl": str(wheel)}],
            "python_wheel_task": {"package_name": "tiny", "entry_point": entry_point},
        }
        for entry_point in entry_points
    ]
    return {"name": "job", "tags": {"headrace": "a/b/job"}, "tasks": tasks, **settings}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "releases")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "releases" / "x" / "releases" / "r1" / "tiny-1.0-py3-none-any.whl"
    file.parent.mkdir(parents=True)
    file.write_bytes(tiny_wheel(TASK_CODE, "run", "good", "bad", "exits"))
    return file


def wait_for_end(cluster: Cluster, run_id: int) -> Run:
    wait_until(lambda: not cluster.get_run(run_id).is_active, f"the end of run {run_id}")
    return cluster.get_run(run_id)


def test_run_calls_the_entry_point_and_has_its_result_and_output(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "good"))
    run = wait_for_end(cluster, cluster.start_run(job, "token"))
    assert (run.phase, run.result, run.uses("r1"), run.uses("r2")) == ("TERMINATED", "SUCCESS", True, False)
    assert cluster.read_output(run) == "good\n"
    assert cluster.start_run(job, "token") == run.id
    assert cluster.start_run(job, "another") == run.id + 1
    wait_for_end(cluster, run.id + 1)


def test_start_restarts_a_continuous_job_whose_run_has_ended(cluster: Cluster, wheel: Path, tmp_path: Path) -> None:
    job_id = cluster.create_job({**body(wheel, "good"), "continuous": {"pause_status": "UNPAUSED"}})
    (first,) = cluster.list_runs(job_id)
    wait_for_end(cluster, first.id)
    target = DeployTarget("b", Target("one"), cluster, str(tmp_path / "root"), "alice")
    job = cluster.get_job(job_id)
    assert job is not None
    cluster.make_directory(target.root)
    StateStore(target).write(State("", jobs={"live": DeployedJob(job_id, "r1", job.settings, {})}))
    start_job("live", target, break_lock=False, report=lambda line: None)
    second, _ = cluster.list_runs(job_id)
    wait_for_end(cluster, second.id)


def test_failed_task_fails_the_run_and_dependent_tasks_do_not_start(cluster: Cluster, wheel: Path) -> None:
    settings = body(wheel, "bad", "good")
    settings["tasks"][1]["depends_on"] = [{"task_key": "bad"}]  # type: ignore[index]
    run = wait_for_end(cluster, cluster.start_run(cluster.create_job(settings), "t"))
    assert (run.result, run.message) == ("FAILED", "task bad ended with exit code 1")
    assert "OSError: broken" in cluster.read_output(run)
    assert "good\n" not in cluster.read_output(run)


def test_continuous_job_runs_until_it_is_cancelled(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "run", continuous={"pause_status": "UNPAUSED"}))
    (run,) = cluster.list_runs(job)
    wait_until(lambda: (Path(run.url) / "started").exists(), "the start of the task")
    assert cluster.get_run(run.id).phase == "RUNNING"
    cluster.reset_job(job, body(wheel, "run", continuous={"pause_status": "UNPAUSED"}))
    assert len(cluster.list_runs(job, active=True)) == 1  # no second run
    cluster.reset_job(job, body(wheel, "run", continuous={"pause_status": "PAUSED"}))
    cluster.cancel_run(run.id)
    assert wait_for_end(cluster, run.id).result == "CANCELED"
    cluster.cancel_run(run.id)  # has no effect on a run that has ended
    assert cluster.list_runs(job, active=True) == []


def test_run_whose_process_was_killed_has_an_internal_error(cluster: Cluster, wheel: Path, monkeypatch) -> None:
    run_id = cluster.start_run(cluster.create_job(body(wheel, "run")), "t")
    directory = Path(cluster.get_run(run_id).url)
    wait_until(lambda: (directory / "started").exists(), "the start of the task")
    os.killpg(int((directory / "alive").read_text()), signal.SIGKILL)
    monkeypatch.setattr("headrace.deploy.submitted_run.START_TIMEOUT_S", 0)
    run = wait_for_end(cluster, run_id)
    assert (run.phase, run.result) == ("INTERNAL_ERROR", "")
    assert "its process on" in run.message
    assert "died" in run.message


def test_job_is_created_once_per_tag(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "good"))
    assert cluster.create_job(body(wheel, "good")) == job
    other = {**body(wheel, "good"), "tags": {"headrace": "a/c/job"}}
    assert cluster.create_job(other) != job
    cluster.delete_job(job)
    cluster.delete_job(job)
    assert cluster.get_job(job) is None


def test_files_are_created_replaced_and_deleted(cluster: Cluster, tmp_path: Path) -> None:
    file = str(tmp_path / "file")
    assert cluster.read_file(file) is None
    assert cluster.create_file(file, b"one")
    assert not cluster.create_file(file, b"two")
    cluster.write_file(file, b"three")
    assert (cluster.read_file(file), cluster.list_directory(str(tmp_path / "nowhere"))) == (b"three", [])
    assert [name for name in cluster.list_directory(str(tmp_path)) if "file" in name] == ["file"]
    cluster.delete(file)
    cluster.delete(file)
    request = tmp_path / "checkpoints of a new run" / "stop.json"
    assert cluster.write_request(str(request), b"now")
    assert request.read_bytes() == b"now"
    cluster.delete_request(str(request))
    cluster.delete_request(str(request))
    assert not request.exists()
    cluster.write_file(file, b"a file instead of a directory")
    assert not cluster.write_request(f"{file}/stop.json", b"")


def test_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeploymentError, match="cannot write to the directory for releases"):
        Cluster(tmp_path / "file")
