"""When runs begin and end: tokens, limits, queues, and the one run of a continuous job."""

from __future__ import annotations

from pathlib import Path

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue, InvalidState, ResourceDoesNotExist
from databricks.sdk.service.jobs import BaseRun

from headrace.testing.workspace import LocalWorkspace
from headrace.testing.workspace.dispatcher import Dispatch
from processes import wait_until
from workspaces import continuous, create, end_of, job, reset, start, state, task_of


def active(client: WorkspaceClient, number: int) -> list[int]:
    return [run.run_id for run in client.jobs.list_runs(job_id=number, active_only=True) if run.run_id]


def running(client: WorkspaceClient, number: int, *, but: int = 0) -> int:
    """Waits for the job's one run; its id."""

    def one() -> bool:
        runs = active(client, number)
        assert len(runs) <= 1
        return bool(runs) and runs[0] != but and state(client, runs[0]) == "RUNNING"

    wait_until(one, f"a run of job {number}")
    return active(client, number)[0]


def test_a_run_succeeds_and_tells_what_it_ran(client: WorkspaceClient) -> None:
    run = start(client, create(client, job("a", "b")), python_named_params={"env": "dev"})
    assert end_of(client, run) == "SUCCESS"
    told = client.jobs.get_run(run)
    assert told.status is not None and told.status.termination_details is not None
    assert told.status.termination_details.code is not None and told.status.termination_details.code.value == "SUCCESS"
    assert (told.run_name, told.creator_user_name, told.number_in_job) == ("orders", "alice@example.com", 1)
    assert told.start_time and told.end_time and told.end_time >= told.start_time
    task = task_of(told, "b")
    assert task.libraries and task.python_wheel_task.entry_point == "b"
    (alone,) = client.jobs.get_run(task.run_id).tasks or []
    assert alone.task_key == "b"


def test_a_token_starts_one_run(client: WorkspaceClient) -> None:
    number = create(client, job())
    first, again, other = (start(client, number, idempotency_token=token) for token in ("x", "x", "y"))
    assert first == again != other
    assert len(list(client.jobs.list_runs(job_id=number))) == 2


def test_runs_come_in_pages_newest_first(client: WorkspaceClient) -> None:
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


def test_a_continuous_job_always_has_one_run(client: WorkspaceClient) -> None:
    number = create(client, continuous())
    first = running(client, number)
    client.jobs.cancel_run(first)
    second = running(client, number, but=first)
    assert state(client, first) == "CANCELED"
    assert [run.trigger and run.trigger.value for run in _runs(client, number)] == ["CONTINUOUS"] * 2
    with pytest.raises(InvalidState):
        start(client, number)
    reset(client, number, continuous(name="renamed"))
    assert active(client, number) == [second]  # a new definition waits for the end of the run
    client.jobs.cancel_run(second)
    assert client.jobs.get_run(running(client, number, but=second)).run_name == "renamed"


def test_a_paused_job_rests_and_can_be_run_by_hand(client: WorkspaceClient) -> None:
    number = create(client, continuous(paused=True))
    assert _runs(client, number) == []
    run = start(client, number)
    client.jobs.cancel_run(run)
    assert end_of(client, run) == "CANCELED"
    reset(client, number, continuous())
    going = running(client, number, but=run)
    reset(client, number, continuous(paused=True))
    assert active(client, number) == [going]  # a pause ends nothing
    client.jobs.cancel_run(going)
    assert end_of(client, going) == "CANCELED"
    assert len(_runs(client, number)) == 2


def test_one_too_many_is_queued_or_skipped(client: WorkspaceClient) -> None:
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


def test_deleting_a_job_ends_its_runs(client: WorkspaceClient) -> None:
    number = create(client, continuous())
    run = running(client, number)
    client.jobs.delete(number)
    assert end_of(client, run) == "CANCELED"
    assert active(client, number) == []


def test_what_is_not_there(client: WorkspaceClient) -> None:
    for ask in (client.jobs.get_run, client.jobs.get_run_output, client.jobs.cancel_run):
        with pytest.raises(ResourceDoesNotExist):
            ask(1)


def test_the_output_is_asked_of_a_task(client: WorkspaceClient) -> None:
    run = start(client, create(client, job("a", "b")))
    end_of(client, run)
    with pytest.raises(InvalidParameterValue, match="multiple tasks"):
        client.jobs.get_run_output(run)
    assert client.jobs.get_run_output(task_of(client.jobs.get_run(run), "a").run_id).logs == ""


def test_a_failing_continuous_job_waits_longer_and_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    monkeypatch.setattr("threading.Timer.start", lambda timer: delays.append(timer.interval))
    with LocalWorkspace(tmp_path / "workspace", restart_delay=1.0) as workspace:  # and there is no wheel
        client = workspace.client()
        number = create(client, continuous())
        for count in range(1, 9):
            wait_until(lambda count=count: len(delays) == count, "the end of a run")  # type: ignore[misc]
            _dispatch(workspace).keep(number)
        wait_until(lambda: len(delays) == 9, "the end of the last run")
        assert {state(client, run.run_id or 0) for run in _runs(client, number)} == {"FAILED"}
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def _dispatch(workspace: LocalWorkspace) -> Dispatch:
    return workspace._dispatch


def _runs(client: WorkspaceClient, number: int) -> list[BaseRun]:
    return list(client.jobs.list_runs(job_id=number))
