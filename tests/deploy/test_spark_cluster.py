"""Releases on plain Spark clusters: from one master to another with the same bytes, and the jobs of a directory."""

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
from deployments import commit
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
engine: {{kind: spark, master: "{master}", releases: {place}/releases}}
tables: {{root: {place}/tables}}
checkpoints: {place}/checkpoints
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
  spark_version: {default: 17.3.x-scala2.13}
  node_type: {default: i3.xlarge}
  workers: {default: 1}
  user: {default: everybody}
targets: {one: {}, two: {}}
"""


def headrace(*arguments: str, bundle: Path) -> Result:
    done = CliRunner().invoke(main, [*arguments, "-C", str(bundle)])
    assert done.exit_code == 0, done.output
    return done


def last_run(bundle: Path, environment: str) -> str:
    (job,) = json.loads(headrace("jobs", "--env", environment, "-o", "json", bundle=bundle).stdout)
    return str(job["last"]["result"] or job["last"]["phase"]) if job["last"] else ""


def hashes(place: Path, environment: str) -> dict[str, str]:
    (release,) = (place / "releases" / "shop" / environment / "releases").iterdir()
    return {
        file.relative_to(release).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in release.rglob("*")
        if file.is_file()
    }


def orders(place: Path) -> list[str]:
    table = DeltaTable(str(place / "tables" / "silver_orders")).to_pyarrow_table(columns=["order_id"])
    return sorted(table["order_id"].to_pylist())


def test_a_release_goes_from_one_cluster_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)  # what runs there is the release's code, not this tree's
    bundle, one, two = copy_tree(tmp_path / "bundle"), tmp_path / "one", tmp_path / "two"
    for name in ("dev", "staging", "prod"):
        (bundle / "conf" / f"{name}.yml").unlink()
    (bundle / "databricks.yml").write_text(DATABRICKS)
    (bundle / ".gitignore").write_text("dist/\n__pycache__/\n")
    data = tmp_path / "data"
    make_sample(data, orders=200, customers=20, files=2, pace=10, mix=CLEAN)
    for place in (one, two):
        place.mkdir()
    with standalone(one) as first, standalone(two) as second:
        for place, master in ((one, first), (two, second)):
            text = ENVIRONMENT.format(master=master, place=place, data=data)
            (bundle / "conf" / f"{place.name}.yml").write_text(text + SETTINGS)
        commit(bundle)
        headrace("deploy", "--env", "one", "--yes", bundle=bundle)
        end_of_run(bundle, "one")
        headrace("promote", "--from", "one", "--to", "two", "--yes", bundle=bundle)
        end_of_run(bundle, "two")
    assert hashes(one, "one") == hashes(two, "two")
    assert len(orders(one)) == 200
    assert orders(one) == orders(two)
    assert "Registered app" in (two / "master.log").read_text()
    assert "nothing would change" in headrace("plan", "--env", "two", bundle=bundle).output


def end_of_run(bundle: Path, environment: str) -> None:
    wait_until(lambda: last_run(bundle, environment) not in ("", "PENDING", "RUNNING"), "the end of the run")
    said = headrace("logs", "orders", "--env", environment, bundle=bundle).output
    assert last_run(bundle, environment) == "SUCCESS", said


# ── The directory, without Spark ──────────────────────────────────────────────────────────────────────

WAITING = "import pathlib, signal, sys, time\nstop = []\nsignal.signal(signal.SIGTERM, lambda *_: stop.append(1))\n"
WAIT = f"{WAITING}def run():\n    pathlib.Path('here').write_text('')\n    while not stop: time.sleep(0.01)\n"


def body(wheel: Path, *points: str, **settings: object) -> dict[str, object]:
    tasks = [
        {
            "task_key": point,
            "libraries": [{"whl": str(wheel)}],
            "python_wheel_task": {"package_name": "tiny", "entry_point": point},
        }
        for point in points
    ]
    return {"name": "job", "tags": {"headrace": "a/b/job"}, "tasks": tasks, **settings}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "releases")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    code = WAIT + "def good(): print('good')\ndef bad(): raise OSError('broken')\ndef exits(): sys.exit(3)\n"
    file = tmp_path / "releases" / "x" / "releases" / "r1" / "tiny-1.0-py3-none-any.whl"
    file.parent.mkdir(parents=True)
    file.write_bytes(tiny_wheel(code, "run", "good", "bad", "exits"))
    return file


def ended(cluster: Cluster, run: int) -> Run:
    wait_until(lambda: not cluster.run(run).is_active, f"the end of run {run}")
    return cluster.run(run)


def test_a_run_calls_the_wheel_and_tells_its_end(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "good"))
    run = ended(cluster, cluster.start(job, "token"))
    assert (run.phase, run.result, run.uses("r1"), run.uses("r2")) == ("TERMINATED", "SUCCESS", True, False)
    assert cluster.output(run) == "good\n"
    assert cluster.start(job, "token") == run.id
    assert cluster.start(job, "another") == run.id + 1
    ended(cluster, run.id + 1)


def test_a_continuous_job_whose_run_has_ended_is_started_again_by_hand(
    cluster: Cluster, wheel: Path, tmp_path: Path
) -> None:
    number = cluster.create_job({**body(wheel, "good"), "continuous": {"pause_status": "UNPAUSED"}})
    (first,) = cluster.runs(number)
    ended(cluster, first.id)
    place = DeployTarget("b", Target("one"), cluster, str(tmp_path / "root"), "somebody")
    found = cluster.job(number)
    assert found is not None
    cluster.make_directory(place.root)
    StateStore(place).write(State("", jobs={"live": DeployedJob(number, "r1", found.settings, {})}))
    start_job("live", place, break_lock=False, say=lambda line: None)
    second, _ = cluster.runs(number)
    ended(cluster, second.id)


def test_a_task_that_fails_fails_the_run_and_what_depends_on_it_does_not_begin(cluster: Cluster, wheel: Path) -> None:
    settings = body(wheel, "bad", "good")
    settings["tasks"][1]["depends_on"] = [{"task_key": "bad"}]  # type: ignore[index]
    run = ended(cluster, cluster.start(cluster.create_job(settings), "t"))
    assert (run.result, run.message) == ("FAILED", "task bad ended with code 1")
    assert "OSError: broken" in cluster.output(run)
    assert "good\n" not in cluster.output(run)


def test_a_continuous_job_runs_from_its_making_until_it_is_asked_to_end(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "run", continuous={"pause_status": "UNPAUSED"}))
    (run,) = cluster.runs(job)
    wait_until(lambda: (Path(run.url) / "here").exists(), "the task at work")
    assert cluster.run(run.id).phase == "RUNNING"
    cluster.reset_job(job, body(wheel, "run", continuous={"pause_status": "UNPAUSED"}))
    assert len(cluster.runs(job, active=True)) == 1  # its one run goes on
    cluster.reset_job(job, body(wheel, "run", continuous={"pause_status": "PAUSED"}))
    cluster.cancel(run.id)
    assert ended(cluster, run.id).result == "CANCELED"
    cluster.cancel(run.id)  # nothing, once it has ended
    assert cluster.runs(job, active=True) == []


def test_a_run_whose_process_was_killed_is_told_as_gone(cluster: Cluster, wheel: Path, monkeypatch) -> None:
    run = cluster.start(cluster.create_job(body(wheel, "run")), "t")
    place = Path(cluster.run(run).url)
    wait_until(lambda: (place / "here").exists(), "the task at work")
    os.killpg(int((place / "alive").read_text()), signal.SIGKILL)
    monkeypatch.setattr("headrace.deploy.submitted_run.BEGINNING", 0)
    gone = ended(cluster, run)
    assert (gone.phase, gone.result) == ("INTERNAL_ERROR", "")
    assert "is gone" in gone.message


def test_a_job_is_made_once_for_its_tag(cluster: Cluster, wheel: Path) -> None:
    job = cluster.create_job(body(wheel, "good"))
    assert cluster.create_job(body(wheel, "good")) == job
    other = {**body(wheel, "good"), "tags": {"headrace": "a/c/job"}}
    assert cluster.create_job(other) != job
    cluster.delete_job(job)
    cluster.delete_job(job)
    assert cluster.job(job) is None


def test_files_are_whole_or_not_there(cluster: Cluster, tmp_path: Path) -> None:
    file = str(tmp_path / "file")
    assert cluster.read(file) is None
    assert cluster.write_new(file, b"one")
    assert not cluster.write_new(file, b"two")
    cluster.write(file, b"three")
    assert (cluster.read(file), cluster.names(str(tmp_path / "nowhere"))) == (b"three", [])
    assert [name for name in cluster.names(str(tmp_path)) if "file" in name] == ["file"]
    cluster.delete(file)
    cluster.delete(file)
    young = tmp_path / "checkpoints of a run that has just begun" / "stop.json"
    assert cluster.ask(str(young), b"now")
    assert young.read_bytes() == b"now"
    cluster.withdraw(str(young))
    cluster.withdraw(str(young))
    assert not young.exists()
    cluster.write(file, b"in the way")
    assert not cluster.ask(f"{file}/stop.json", b"")


def test_a_directory_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeploymentError, match="cannot write to it"):
        Cluster(tmp_path / "file")
