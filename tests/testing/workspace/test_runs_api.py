"""Life cycle of runs: idempotency tokens, concurrency limits, queues, and the single run of a continuous job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue, InvalidState, ResourceDoesNotExist
from databricks.sdk.service.jobs import BaseRun

from headrace.testing.workspace import LocalWorkspace
from headrace.testing.workspace.dispatcher import Dispatcher
from processes import wait_until
from workspaces import CLUSTER, continuous, create, end_of, job, reset, start, state, task_of


def active_runs(client: WorkspaceClient, number: int) -> list[int]:
    return [run.run_id for run in client.jobs.list_runs(job_id=number, active_only=True) if run.run_id]


def wait_for_running(client: WorkspaceClient, number: int, *, other_than: int = 0) -> int:
    """Wait until the only active run of a job is running; return its id."""

    def is_running() -> bool:
        runs = active_runs(client, number)
        assert len(runs) <= 1
        return bool(runs) and runs[0] != other_than and state(client, runs[0]) == "RUNNING"

    wait_until(is_running, f"a run of job {number}")
    return active_runs(client, number)[0]


def test_successful_run_is_described_with_its_tasks(client: WorkspaceClient) -> None:
    run = start(client, create(client, job("a", "b")), python_named_params={"env": "dev"})
    assert end_of(client, run) == "SUCCESS"
    ended = client.jobs.get_run(run)
    assert ended.status is not None and ended.status.termination_details is not None
    code = ended.status.termination_details.code
    assert code is not None and code.value == "SUCCESS"
    assert (ended.run_name, ended.creator_user_name, ended.number_in_job) == ("orders", "alice@example.com", 1)
    assert ended.start_time and ended.end_time and ended.end_time >= ended.start_time
    task = task_of(ended, "b")
    assert task.libraries and task.python_wheel_task.entry_point == "b"
    (only_task,) = client.jobs.get_run(task.run_id).tasks or []
    assert only_task.task_key == "b"


def test_idempotency_token_starts_one_run(client: WorkspaceClient) -> None:
    number = create(client, job())
    first, repeated, other = (start(client, number, idempotency_token=token) for token in ("x", "x", "y"))
    assert first == repeated != other
    assert len(list(client.jobs.list_runs(job_id=number))) == 2


def test_submitted_run_belongs_to_no_job(client: WorkspaceClient) -> None:
    task = {**job()["tasks"][0], "new_cluster": CLUSTER}
    del task["job_cluster_key"]

    def submit(**fields: Any) -> int:
        body = {"run_name": "once", "tasks": [task], **fields}
        return int(client.api_client.do("POST", "/api/2.2/jobs/runs/submit", body=body)["run_id"])  # type: ignore[call-overload]

    first, repeated, other = (submit(idempotency_token=token) for token in ("x", "x", "y"))
    assert first == repeated != other
    assert end_of(client, first) == "SUCCESS"
    assert client.jobs.get_run(first).run_name == "once"
    assert list(client.jobs.list()) == []
    with pytest.raises(InvalidParameterValue, match="Shared job clusters are not supported"):
        submit(job_clusters=job()["job_clusters"])


def test_list_is_paginated_newest_first(client: WorkspaceClient) -> None:
    number, other = create(client, job()), create(client, job())
    runs = []
    for _ in range(5):
        runs.append(start(client, number))
        end_of(client, runs[-1])
    start(client, other)
    assert [run.run_id for run in client.jobs.list_runs(job_id=number, limit=2)] == runs[::-1]
    assert len(list(client.jobs.list_runs(completed_only=True))) >= 5
    with pytest.raises(InvalidParameterValue):
        list(client.jobs.list_runs(active_only=True, completed_only=True))
    with pytest.raises(InvalidParameterValue):
        list(client.jobs.list_runs(limit=26))


def test_continuous_job_always_has_one_run(client: WorkspaceClient) -> None:
    number = create(client, continuous())
    first = wait_for_running(client, number)
    client.jobs.cancel_run(first)
    second = wait_for_running(client, number, other_than=first)
    assert state(client, first) == "CANCELED"
    assert [run.trigger and run.trigger.value for run in _runs(client, number)] == ["CONTINUOUS"] * 2
    with pytest.raises(InvalidState):
        start(client, number)
    reset(client, number, continuous(name="renamed"))
    assert active_runs(client, number) == [second]  # the new definition applies to the next run
    client.jobs.cancel_run(second)
    assert client.jobs.get_run(wait_for_running(client, number, other_than=second)).run_name == "renamed"


def test_paused_job_runs_only_when_requested(client: WorkspaceClient) -> None:
    number = create(client, continuous(paused=True))
    assert _runs(client, number) == []
    run = start(client, number)
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    reset(client, number, continuous())
    active = wait_for_running(client, number, other_than=run)
    reset(client, number, continuous(paused=True))
    assert active_runs(client, number) == [active]  # pausing does not end the active run
    client.jobs.cancel_run(active)
    assert end_of(client, active) == "CANCELED"
    assert len(_runs(client, number)) == 2


def test_run_above_the_limit_is_queued_or_skipped(client: WorkspaceClient) -> None:
    number = create(client, continuous(paused=True, queue={"enabled": True}))
    first, second, third = (start(client, number) for _ in range(3))
    wait_until(lambda: state(client, first) == "RUNNING", "the first run")
    assert state(client, second) == state(client, third) == "QUEUED"
    client.jobs.cancel_run(third)
    assert state(client, third) == "CANCELED"
    reset(client, number, continuous(paused=True))
    skipped = start(client, number)
    assert state(client, skipped) == "MAXIMUM_CONCURRENT_RUNS_REACHED"
    client.jobs.cancel_run(first)
    wait_until(lambda: state(client, second) == "RUNNING", "the queued run")
    client.jobs.cancel_all_runs(job_id=number)
    assert end_of(client, second) == "CANCELED"


def test_deleting_a_job_cancels_its_runs(client: WorkspaceClient) -> None:
    number = create(client, continuous())
    run = wait_for_running(client, number)
    client.jobs.delete(number)
    assert end_of(client, run) == "CANCELED"
    assert active_runs(client, number) == []


def test_unknown_run_is_an_error(client: WorkspaceClient) -> None:
    for call in (client.jobs.get_run, client.jobs.get_run_output, client.jobs.cancel_run):
        with pytest.raises(ResourceDoesNotExist):
            call(1)


def test_output_of_several_tasks_is_available_per_task(client: WorkspaceClient) -> None:
    run = start(client, create(client, job("a", "b")))
    end_of(client, run)
    with pytest.raises(InvalidParameterValue, match="multiple tasks"):
        client.jobs.get_run_output(run)
    assert client.jobs.get_run_output(task_of(client.jobs.get_run(run), "a").run_id).logs == ""


def test_delay_of_a_failing_continuous_job_doubles_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    monkeypatch.setattr("threading.Timer.start", lambda timer: delays.append(timer.interval))
    with LocalWorkspace(tmp_path / "workspace", restart_delay=1.0) as workspace:  # without a wheel, each run fails
        client = workspace.client()
        number = create(client, continuous())
        for count in range(1, 9):
            wait_until(lambda count=count: len(delays) == count, "the end of a run")  # type: ignore[misc]
            _dispatcher(workspace).start_run_if_continuous(number)
        wait_until(lambda: len(delays) == 9, "the end of the last run")
        assert {state(client, run.run_id or 0) for run in _runs(client, number)} == {"FAILED"}
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def _dispatcher(workspace: LocalWorkspace) -> Dispatcher:
    return workspace._dispatcher


def _runs(client: WorkspaceClient, number: int) -> list[BaseRun]:
    return list(client.jobs.list_runs(job_id=number))
