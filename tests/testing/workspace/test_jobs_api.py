"""Definitions of jobs: what comes back of what was sent, pages, names, and creates that nothing tells apart."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, InvalidParameterValue, ResourceDoesNotExist
from databricks.sdk.service.jobs import JobSettings, PauseStatus, Task

from headrace.testing.workspace import LocalWorkspace
from workspaces import continuous, create, job, reset


def test_a_job_comes_back_with_what_the_platform_fills_in(client: WorkspaceClient) -> None:
    number = create(client, job("b", "a", tags={"headrace": "orders"}, no_such_key=1))
    told = client.jobs.get(number)
    assert (told.creator_user_name, told.run_as_user_name) == ("alice@example.com", "alice@example.com")
    assert told.created_time
    assert told.settings is not None and told.settings.tags == {"headrace": "orders"}
    assert told.settings.max_concurrent_runs == 1
    plain = client.api_client.do("GET", "/api/2.1/jobs/get", query={"job_id": number})
    assert isinstance(plain, dict)
    assert plain["settings"]["tasks"][0]["run_if"] == "ALL_SUCCESS"
    assert "no_such_key" not in plain["settings"]


def test_each_create_makes_one_more_job(client: WorkspaceClient) -> None:
    numbers = {create(client, job(name="Orders")) for _ in range(2)}
    create(client, job(name="orders two"))
    assert {each.job_id for each in client.jobs.list(name="ORDERS")} == numbers
    assert list(client.jobs.list(name="order")) == []


def test_lists_come_in_pages_newest_first(client: WorkspaceClient) -> None:
    numbers = [create(client, job(tags={"n": str(n)})) for n in range(7)]
    told = list(client.jobs.list(limit=3))
    assert [each.job_id for each in told] == numbers[::-1]
    assert all(each.settings is not None and each.settings.tags and not each.settings.tasks for each in told)
    (expanded,) = client.api_client.do("GET", "/api/2.2/jobs/list", query={"limit": 1, "expand_tasks": True})["jobs"]  # type: ignore[call-overload]
    assert expanded["settings"]["tasks"]
    with pytest.raises(InvalidParameterValue):
        list(client.jobs.list(limit=101))


def test_a_page_does_not_move_when_jobs_come_and_go(client: WorkspaceClient) -> None:
    numbers = [create(client, job()) for _ in range(4)]
    pages = client.jobs.list(limit=2)
    seen = [next(pages).job_id, next(pages).job_id]
    create(client, job())
    client.jobs.delete(numbers[2])
    assert seen + [each.job_id for each in pages] == numbers[::-1]


def test_many_tasks_come_in_pages(client: WorkspaceClient) -> None:
    keys = [f"t{n}" for n in range(250)]
    told = client.jobs.get(create(client, job(*keys)))
    assert told.settings is not None
    assert [task.task_key for task in told.settings.tasks or []] == keys


def test_reset_replaces_all_but_the_identity(client: WorkspaceClient) -> None:
    number = create(client, job(run_as={"service_principal_name": "robot"}, tags={"a": "b"}, timeout_seconds=5))
    reset(client, number, job(name="new"))
    told = client.jobs.get(number)
    assert told.settings is not None
    assert (told.settings.name, told.settings.tags, told.settings.timeout_seconds) == ("new", None, 0)
    assert told.run_as_user_name == "robot"
    with pytest.raises(ResourceDoesNotExist):
        reset(client, 1, job())


def test_a_deleted_job_is_gone_and_its_number_is_not_used_again(client: WorkspaceClient) -> None:
    number = create(client, job())
    client.jobs.delete(number)
    for ask in (client.jobs.get, client.jobs.delete, client.jobs.run_now):
        with pytest.raises(ResourceDoesNotExist):
            ask(number)
    assert create(client, job()) > number


def test_the_classes_of_the_client_are_understood(client: WorkspaceClient) -> None:
    given = JobSettings.from_dict(continuous(paused=True))
    made = client.jobs.create(
        name=given.name, tasks=given.tasks, job_clusters=given.job_clusters, continuous=given.continuous
    )
    assert made.job_id is not None
    told = client.jobs.get(made.job_id).settings
    assert told is not None and told.continuous is not None and told.continuous.pause_status == PauseStatus.PAUSED
    assert told.tasks is not None and isinstance(told.tasks[0], Task)


def test_a_broken_body_is_a_400(client: WorkspaceClient) -> None:
    for body in (b"{", b"[]"):
        with pytest.raises(BadRequest, match="Could not parse request object"):
            client.api_client.do("POST", "/api/2.2/jobs/create", data=body)
    for tasks in (["a"], [{"task_key": "a", "notebook_task": {}, "depends_on": [{}]}], {"task_key": "a"}):
        with pytest.raises(BadRequest, match="Could not parse request object"):
            create(client, {**job(), "tasks": tasks})


def test_two_workspaces_know_nothing_of_each_other(
    client: WorkspaceClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    create(client, job())
    with LocalWorkspace(tmp_path_factory.mktemp("other"), execute=False) as other:
        assert list(other.client().jobs.list()) == []
