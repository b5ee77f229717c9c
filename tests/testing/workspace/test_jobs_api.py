"""Job definitions: defaults of the platform, pages, search by name, reset and repeated creates."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, InvalidParameterValue, ResourceDoesNotExist
from databricks.sdk.service.jobs import JobSettings, PauseStatus, Task

from headrace.testing.workspace import LocalWorkspace
from workspaces import continuous, create, job, reset


def test_job_is_returned_with_the_defaults_of_the_platform(client: WorkspaceClient) -> None:
    number = create(client, job("b", "a", tags={"headrace": "orders"}, no_such_key=1))
    created = client.jobs.get(number)
    assert (created.creator_user_name, created.run_as_user_name) == ("alice@example.com", "alice@example.com")
    assert created.created_time
    assert created.settings is not None and created.settings.tags == {"headrace": "orders"}
    assert created.settings.max_concurrent_runs == 1
    document = client.api_client.do("GET", "/api/2.1/jobs/get", query={"job_id": number})
    assert isinstance(document, dict)
    assert document["settings"]["tasks"][0]["run_if"] == "ALL_SUCCESS"
    assert "no_such_key" not in document["settings"]


def test_all_fields_of_the_sdk_are_stored_except_permissions(client: WorkspaceClient) -> None:
    permissions = [{"user_name": "bob", "level": "CAN_VIEW"}]
    number = create(client, job(duration_target="5 minutes", permissions=permissions))
    document = client.api_client.do("GET", "/api/2.2/jobs/get", query={"job_id": number})
    assert isinstance(document, dict)
    assert document["settings"]["duration_target"] == "5 minutes"
    assert "permissions" not in document["settings"]


def test_each_create_call_creates_another_job(client: WorkspaceClient) -> None:
    numbers = {create(client, job(name="Orders")) for _ in range(2)}
    create(client, job(name="orders two"))
    assert {listed.job_id for listed in client.jobs.list(name="ORDERS")} == numbers
    assert list(client.jobs.list(name="order")) == []


def test_list_is_paginated_newest_first(client: WorkspaceClient) -> None:
    numbers = [create(client, job(tags={"n": str(n)})) for n in range(7)]
    jobs = list(client.jobs.list(limit=3))
    assert [listed.job_id for listed in jobs] == numbers[::-1]
    assert all(listed.settings and listed.settings.tags and not listed.settings.tasks for listed in jobs)
    (expanded,) = client.api_client.do("GET", "/api/2.2/jobs/list", query={"limit": 1, "expand_tasks": True})["jobs"]  # type: ignore[call-overload]
    assert expanded["settings"]["tasks"]
    with pytest.raises(InvalidParameterValue):
        list(client.jobs.list(limit=101))


def test_creating_and_deleting_jobs_does_not_shift_pages(client: WorkspaceClient) -> None:
    numbers = [create(client, job()) for _ in range(4)]
    pages = client.jobs.list(limit=2)
    seen = [next(pages).job_id, next(pages).job_id]
    create(client, job())
    client.jobs.delete(numbers[2])
    assert seen + [listed.job_id for listed in pages] == numbers[::-1]


def test_many_tasks_are_paginated(client: WorkspaceClient) -> None:
    keys = [f"t{n}" for n in range(250)]
    settings = client.jobs.get(create(client, job(*keys))).settings
    assert settings is not None
    assert [task.task_key for task in settings.tasks or []] == keys


def test_reset_replaces_everything_except_run_as(client: WorkspaceClient) -> None:
    number = create(client, job(run_as={"service_principal_name": "robot"}, tags={"a": "b"}, timeout_seconds=5))
    reset(client, number, job(name="new"))
    updated = client.jobs.get(number)
    assert updated.settings is not None
    assert (updated.settings.name, updated.settings.tags, updated.settings.timeout_seconds) == ("new", None, 0)
    assert updated.run_as_user_name == "robot"
    with pytest.raises(ResourceDoesNotExist):
        reset(client, 1, job())


def test_deleted_job_is_gone_and_its_id_is_not_reused(client: WorkspaceClient) -> None:
    number = create(client, job())
    client.jobs.delete(number)
    for call in (client.jobs.get, client.jobs.delete, client.jobs.run_now):
        with pytest.raises(ResourceDoesNotExist):
            call(number)
    assert create(client, job()) > number


def test_typed_calls_of_the_official_client_work(client: WorkspaceClient) -> None:
    definition = JobSettings.from_dict(continuous(paused=True))
    created = client.jobs.create(
        name=definition.name,
        tasks=definition.tasks,
        job_clusters=definition.job_clusters,
        continuous=definition.continuous,
    )
    assert created.job_id is not None
    settings = client.jobs.get(created.job_id).settings
    assert settings is not None and settings.continuous is not None
    assert settings.continuous.pause_status == PauseStatus.PAUSED
    assert settings.tasks is not None and isinstance(settings.tasks[0], Task)


def test_malformed_body_is_an_error(client: WorkspaceClient) -> None:
    for body in (b"{", b"[]"):
        with pytest.raises(BadRequest, match="Could not parse request object"):
            client.api_client.do("POST", "/api/2.2/jobs/create", data=body)
    for tasks in (["a"], [{"task_key": "a", "notebook_task": {}, "depends_on": [{}]}], {"task_key": "a"}):
        with pytest.raises(BadRequest, match="Could not parse request object"):
            create(client, {**job(), "tasks": tasks})


def test_two_workspaces_are_independent(client: WorkspaceClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    create(client, job())
    with LocalWorkspace(tmp_path_factory.mktemp("other"), execute=False) as other:
        assert list(other.client().jobs.list()) == []
