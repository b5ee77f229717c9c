"""Runs with real processes: the uploaded wheel in a child process, results, cancellation and restarts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.testing.workspace import LocalWorkspace
from processes import wait_until
from workspaces import (
    CLUSTER,
    WHEEL,
    continuous,
    create,
    end_of,
    job,
    printed_client,
    put_wheel,
    start,
    state,
    task_of,
    tiny_wheel,
)

CODE = """
import json, os, pathlib, sys, time

def show():
    print("arguments", sys.argv, __file__, os.environ["DATABRICKS_RUNTIME_VERSION"], os.environ.get("CUSTOM"))

def exit_early():
    raise SystemExit(0)

def fail():
    raise ValueError("no good")

def die():
    os._exit(0)

def wait():
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)

def ignore_sigterm():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait()

def hidden():
    print("not in the metadata")
"""
ENTRY_POINTS = ("show", "exit_early", "fail", "die", "wait", "ignore_sigterm")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[LocalWorkspace]:
    with LocalWorkspace(tmp_path / "workspace", restart_delay=0.1, grace=0.5) as running:
        put_wheel(running, CODE, *ENTRY_POINTS)
        yield running


def pids(workspace: LocalWorkspace, task: int) -> list[int]:
    """Return the pids that the entry point `wait` writes: its own and that of its child."""
    file = workspace.directory / "runs" / str(task) / "pids"
    wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, "the task's processes")
    return [int(pid) for pid in file.read_text().split()]


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_uploaded_wheel_runs_with_its_parameters(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    definition = job("show")
    wheel = definition["tasks"][0]["python_wheel_task"]
    wheel["named_parameters"] = {"pipeline": "orders", "env": "dev", "data": "/Volumes/main/shop/data"}
    definition["job_clusters"][0]["new_cluster"] |= {"spark_env_vars": {"CUSTOM": "yes"}}
    run = start(client, create(client, definition), python_named_params={"env": "prod"})
    assert end_of(client, run) == "SUCCESS"
    logs = client.jobs.get_run_output(run).logs or ""
    assert f"['job', '--pipeline=orders', '--env=prod', '--data={workspace.directory}/Volumes/main/shop/data']" in logs
    assert str(workspace.directory) in logs.split("]")[1] and logs.rstrip().endswith("local yes")


def test_any_exit_other_than_a_return_is_a_failure(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    errors = {"exit_early": "SystemExit: 0", "fail": "ValueError: no good", "die": "left no result"}
    run = start(client, create(client, job(*errors)))
    assert end_of(client, run) == "FAILED"
    ended = client.jobs.get_run(run)
    for key, error in errors.items():
        output = client.jobs.get_run_output(task_of(ended, key).run_id)
        assert error in (output.error or "")
    trace = client.jobs.get_run_output(task_of(ended, "fail").run_id).error_trace or ""
    assert "Traceback" in trace and "tiny.py" in trace


def test_tasks_run_in_order_and_stop_after_a_failure(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    definition = job("last", "fail", "show")
    last, fail, show = definition["tasks"]
    last["depends_on"] = [{"task_key": "fail"}]
    fail["depends_on"] = [{"task_key": "show"}]
    always = {**show, "task_key": "always", "run_if": "ALL_DONE", "depends_on": [{"task_key": "last"}]}
    definition["tasks"].append(always)
    run = start(client, create(client, definition))
    assert end_of(client, run) == "FAILED"
    tasks = {task.task_key: task for task in client.jobs.get_run(run).tasks or []}
    results = {
        key: task.state.result_state.value for key, task in tasks.items() if task.state and task.state.result_state
    }
    assert results == {"show": "SUCCESS", "fail": "FAILED", "last": "UPSTREAM_FAILED", "always": "SUCCESS"}
    assert (tasks["show"].end_time or 0) <= (tasks["fail"].end_time or 0)


def test_entry_point_can_be_a_function_outside_of_the_metadata(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, job("hidden", "missing")))
    assert end_of(client, run) == "FAILED"
    ended = client.jobs.get_run(run)
    assert "not in the metadata" in (client.jobs.get_run_output(task_of(ended, "hidden").run_id).logs or "")
    error = client.jobs.get_run_output(task_of(ended, "missing").run_id).error or ""
    assert "neither an entry point nor a function 'missing'" in error


def test_invalid_or_missing_wheel_fails_the_run(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, job("show"))
    wheel = workspace.directory.joinpath(*WHEEL.split("/"))
    for break_wheel in (lambda: wheel.write_bytes(b"no zip"), wheel.unlink):
        break_wheel()
        run = start(client, number)
        assert end_of(client, run) == "FAILED"
        assert "Library installation failed" in (client.jobs.get_run_output(run).error or "")


@pytest.mark.parametrize("key", ["wait", "ignore_sigterm"])
def test_cancelled_run_leaves_no_process(workspace: LocalWorkspace, key: str) -> None:
    client = workspace.client()
    run = start(client, create(client, job(key)))
    processes = pids(workspace, task_of(client.jobs.get_run(run), key).run_id)
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    wait_until(lambda: all(has_ended(pid) for pid in processes), "the end of the task's processes")


def test_failing_continuous_job_is_restarted(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, continuous("fail"))
    wait_until(lambda: len(list(client.jobs.list_runs(job_id=number, completed_only=True))) >= 2, "two failures")
    put_wheel(workspace, CODE.replace('raise ValueError("no good")', "wait()"), *ENTRY_POINTS)

    def has_waiting_run() -> bool:
        files = workspace.directory.glob("runs/*/pids")
        return any(len(file.read_text().split()) == 2 for file in files)

    wait_until(has_waiting_run, "a run with the corrected wheel")


def test_stop_ends_all_processes(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, job("wait")))
    processes = pids(workspace, task_of(client.jobs.get_run(run), "wait").run_id)
    workspace.stop()
    wait_until(lambda: all(has_ended(pid) for pid in processes), "the end of the task's processes")
    workspace.start()
    assert state(workspace.client(), run) == "INTERNAL_ERROR"


def test_processes_end_when_the_workspace_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "workspace", "--directory", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as service:
        try:
            assert service.stdout is not None
            client = printed_client(service.stdout)
            path = f"/api/2.0/workspace-files/import-file{WHEEL}"
            client.api_client.do("POST", path, data=tiny_wheel(CODE, *ENTRY_POINTS))
            run = start(client, create(client, job("wait")))
            task = task_of(client.jobs.get_run(run), "wait").run_id
            file = tmp_path / "runs" / str(task) / "pids"
            wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, "the task's processes")
            first, second = (int(pid) for pid in file.read_text().split())
        finally:
            service.kill()
    wait_until(lambda: has_ended(first) and has_ended(second), "the end of the task's processes")


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        ({}, "runs a pipeline serverless"),
        ({"spark_version": "18.x-scala2.13", "data_security_mode": "USER_ISOLATION"}, "has access mode USER_ISOLATION"),
        ({"spark_version": "16.4.x-scala2.13"}, "has runtime 16.4.x-scala2.13"),
    ],
    ids=["serverless", "shared", "old"],
)
def test_pipeline_fails_on_compute_on_which_it_cannot_run(
    workspace: LocalWorkspace, cluster: dict[str, str], reason: str
) -> None:
    client = workspace.client()
    definition = job("run")
    (task,) = definition["tasks"]
    task["python_wheel_task"]["package_name"] = "headrace"
    if cluster:
        definition["job_clusters"] = [{"job_cluster_key": "main", "new_cluster": {**CLUSTER, **cluster}}]
    else:
        del task["job_cluster_key"], definition["job_clusters"]
        task["environment_key"] = "default"
        definition["environments"] = [{"environment_key": "default", "spec": {"client": "1", "dependencies": []}}]
        del task["libraries"]
    run = start(client, create(client, definition))
    assert end_of(client, run) == "FAILED"
    task_run = task_of(client.jobs.get_run(run), "run").run_id
    assert reason in (client.jobs.get_run_output(task_run).error or "")
