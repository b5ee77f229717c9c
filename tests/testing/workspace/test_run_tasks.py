"""Runs that really run: the uploaded bytes in a child process, what becomes of them, and what they leave behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.testing.workspace import LocalWorkspace
from processes import wait_until
from workspaces import (
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

def say():
    print("said", sys.argv, __file__, os.environ["DATABRICKS_RUNTIME_VERSION"], os.environ.get("GIVEN"))

def leave():
    raise SystemExit(0)

def fail():
    raise ValueError("no good")

def vanish():
    os._exit(0)

def wait():
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)

def stubborn():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait()

def hidden():
    print("not in the metadata")
"""
POINTS = ("say", "leave", "fail", "vanish", "wait", "stubborn")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[LocalWorkspace]:
    with LocalWorkspace(tmp_path / "workspace", restart_delay=0.1, grace=0.5) as running:
        put_wheel(running, CODE, *POINTS)
        yield running


def pids(workspace: LocalWorkspace, task: int) -> list[int]:
    """Waits for the processes of a task that waits."""
    file = workspace.directory / "runs" / str(task) / "pids"
    wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, "the task's processes")
    return [int(pid) for pid in file.read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_uploaded_bytes_run_with_their_parameters(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    definition = job("say")
    wheel = definition["tasks"][0]["python_wheel_task"]
    wheel["named_parameters"] = {"pipeline": "orders", "env": "dev", "data": "/Volumes/main/shop/data"}
    definition["job_clusters"][0]["new_cluster"] |= {"spark_env_vars": {"GIVEN": "yes"}}
    run = start(client, create(client, definition), python_named_params={"env": "prod"})
    assert end_of(client, run) == "SUCCESS"
    logs = client.jobs.get_run_output(run).logs or ""
    assert f"['job', '--pipeline=orders', '--env=prod', '--data={workspace.directory}/Volumes/main/shop/data']" in logs
    assert str(workspace.directory) in logs.split("]")[1] and logs.rstrip().endswith("local yes")


def test_an_exit_that_is_not_a_return_is_a_failure(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    given = {"leave": "SystemExit: 0", "fail": "ValueError: no good", "vanish": "left no result"}
    run = start(client, create(client, job(*given)))
    assert end_of(client, run) == "FAILED"
    told = client.jobs.get_run(run)
    for key, error in given.items():
        output = client.jobs.get_run_output(task_of(told, key).run_id)
        assert error in (output.error or "")
    trace = client.jobs.get_run_output(task_of(told, "fail").run_id).error_trace or ""
    assert "Traceback" in trace and "tiny.py" in trace


def test_tasks_run_in_order_and_stop_at_a_failure(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    definition = job("last", "fail", "say")
    last, fail, say = definition["tasks"]
    last["depends_on"] = [{"task_key": "fail"}]
    fail["depends_on"] = [{"task_key": "say"}]
    always = {**say, "task_key": "always", "run_if": "ALL_DONE", "depends_on": [{"task_key": "last"}]}
    definition["tasks"].append(always)
    run = start(client, create(client, definition))
    assert end_of(client, run) == "FAILED"
    tasks = {task.task_key: task for task in client.jobs.get_run(run).tasks or []}
    results = {
        key: task.state.result_state.value for key, task in tasks.items() if task.state and task.state.result_state
    }
    assert results == {"say": "SUCCESS", "fail": "FAILED", "last": "UPSTREAM_FAILED", "always": "SUCCESS"}
    assert (tasks["say"].end_time or 0) <= (tasks["fail"].end_time or 0)


def test_a_function_that_the_metadata_does_not_name(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, job("hidden", "nowhere")))
    assert end_of(client, run) == "FAILED"
    told = client.jobs.get_run(run)
    assert "not in the metadata" in (client.jobs.get_run_output(task_of(told, "hidden").run_id).logs or "")
    error = client.jobs.get_run_output(task_of(told, "nowhere").run_id).error or ""
    assert "neither an entry point nor a function 'nowhere'" in error


def test_a_wheel_that_is_not_there_or_not_a_wheel(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, job("say"))
    put = workspace.directory.joinpath(*WHEEL.split("/"))
    for spoil in (lambda: put.write_bytes(b"no zip"), put.unlink):
        spoil()
        run = start(client, number)
        assert end_of(client, run) == "FAILED"
        assert "Library installation failed" in (client.jobs.get_run_output(run).error or "")


@pytest.mark.parametrize("key", ["wait", "stubborn"])
def test_a_cancelled_run_leaves_no_process(workspace: LocalWorkspace, key: str) -> None:
    client = workspace.client()
    run = start(client, create(client, job(key)))
    processes = pids(workspace, task_of(client.jobs.get_run(run), key).run_id)
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    wait_until(lambda: all(gone(pid) for pid in processes), "the end of the task's processes")


def test_a_failing_continuous_run_is_started_again(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    number = create(client, continuous("fail"))
    wait_until(lambda: len(list(client.jobs.list_runs(job_id=number, completed_only=True))) >= 2, "two failures")
    put_wheel(workspace, CODE.replace('raise ValueError("no good")', "wait()"), *POINTS)

    def waits() -> bool:
        files = workspace.directory.glob("runs/*/pids")
        return any(len(file.read_text().split()) == 2 for file in files)

    wait_until(waits, "a run with the mended wheel")


def test_stopping_ends_all_processes(workspace: LocalWorkspace) -> None:
    client = workspace.client()
    run = start(client, create(client, job("wait")))
    processes = pids(workspace, task_of(client.jobs.get_run(run), "wait").run_id)
    workspace.stop()
    wait_until(lambda: all(gone(pid) for pid in processes), "the end of the task's processes")
    workspace.start()
    assert state(workspace.client(), run) == "INTERNAL_ERROR"


def test_processes_do_not_outlive_a_killed_service(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "workspace", "--directory", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as service:
        try:
            assert service.stdout is not None
            client = printed_client(service.stdout)
            path = f"/api/2.0/workspace-files/import-file{WHEEL}"
            client.api_client.do("POST", path, data=tiny_wheel(CODE, *POINTS))
            run = start(client, create(client, job("wait")))
            task = task_of(client.jobs.get_run(run), "wait").run_id
            file = tmp_path / "runs" / str(task) / "pids"
            wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, "the task's processes")
            first, second = (int(pid) for pid in file.read_text().split())
        finally:
            service.kill()
    wait_until(lambda: gone(first) and gone(second), "the end of the task's processes")
