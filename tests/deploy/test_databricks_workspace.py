"""Calls of a workspace that fail: lost answers, a busy service, rejected calls, and their messages."""

from __future__ import annotations

import json

import pytest

from headrace.deploy.databricks_workspace import MAX_RUNS, Workspace
from headrace.errors import DeploymentError
from workspaces import job

BODY = {**job(), "tags": {"headrace": "tiny/staging/orders"}}


@pytest.fixture
def remote(workspace):
    return Workspace(workspace.url)


def test_job_is_not_created_twice_if_the_answer_is_lost(workspace, remote):
    workspace.faults.drop_response(1, "jobs/create")
    created = remote.create_job(BODY)
    assert [job.id for job in remote.list_jobs("orders")] == [created]
    assert sum("create" in call.path for call in workspace.faults.calls) == 1


@pytest.mark.parametrize("fault", ["drop_request", "unavailable", "broken"])
def test_failed_creation_of_a_job_is_retried_after_a_search(workspace, remote, fault):
    getattr(workspace.faults, fault)(1, "jobs/create")
    created = remote.create_job(BODY)
    assert [job.id for job in remote.list_jobs("orders")] == [created]
    assert [call.path.rpartition("/")[2] for call in workspace.faults.calls[:3]] == ["create", "list", "create"]


@pytest.mark.parametrize("fault", ["throttle", "unavailable"])
def test_time_to_try_again_is_obeyed_even_if_it_is_longer_than_the_retry_timeout(workspace, monkeypatch, fault):
    monkeypatch.setattr("headrace.deploy.sdk_calls.RETRY_TIMEOUT_S", 1)
    remote = Workspace(workspace.url)
    getattr(workspace.faults, fault)(1, "scim", retry_after=2)
    assert remote.user() == "alice@example.com"


def test_creation_that_was_refused_for_a_busy_service_is_repeated_when_the_service_says(workspace, remote):
    workspace.faults.throttle(1, "jobs/create", retry_after=2)
    created = remote.create_job(BODY)
    assert [job.id for job in remote.list_jobs("orders")] == [created]


def test_throttling_ends_with_an_error(workspace, monkeypatch):
    monkeypatch.setattr("headrace.deploy.sdk_calls.RETRY_TIMEOUT_S", 1)
    monkeypatch.setattr("headrace.deploy.sdk_calls.THROTTLED_TIMEOUT_S", 0)
    workspace.faults.throttle(1, "scim", retry_after=2)
    with pytest.raises(DeploymentError, match="Too many requests"):
        Workspace(workspace.url).user()


@pytest.mark.parametrize("answer", ["{}", '{"content": "&"}', '{"content": 7}'])
def test_export_without_content_is_an_error(workspace, remote, monkeypatch, answer):
    remote.write_file("/Workspace/Shared/file", b"text")
    monkeypatch.setattr(remote, "_call", lambda *arguments, **options: json.loads(answer))
    with pytest.raises(DeploymentError, match="the workspace returns no content of /Workspace/Shared/file"):
        remote.read_file("/Workspace/Shared/file")


def test_sizes_of_all_files_below_a_directory(remote):
    assert remote.file_sizes("/Workspace/Shared/r") == {}
    remote.make_directory("/Workspace/Shared/r/conf/pipelines")
    remote.write_file("/Workspace/Shared/r/conf/pipelines/p.yml", b"steps")
    remote.write_file("/Workspace/Shared/r/databricks.yml", b"")
    assert remote.file_sizes("/Workspace/Shared/r") == {"conf/pipelines/p.yml": 5, "databricks.yml": 0}


def test_job_with_the_same_name_and_another_tag_is_ignored(workspace, remote):
    other = remote.create_job({**BODY, "tags": {"headrace": "tiny/prod/orders"}})
    workspace.faults.drop_response(2, "jobs/create")
    assert remote.create_job(BODY) != other
    assert len(remote.list_jobs("orders")) == 2


def test_file_counts_as_created_if_the_answer_is_lost(workspace, remote):
    workspace.faults.drop_response(1, "import-file")
    assert remote.create_file("/Workspace/Shared/lock.json", b"mine")
    assert not remote.create_file("/Workspace/Shared/lock.json", b"theirs")
    assert remote.read_file("/Workspace/Shared/lock.json") == b"mine"


@pytest.mark.parametrize("fault", ["drop_request", "drop_response", "throttle", "unavailable"])
def test_idempotent_calls_are_retried(workspace, remote, fault):
    job_id = remote.create_job(BODY)
    getattr(workspace.faults, fault)(1, "jobs/reset")
    remote.reset_job(job_id, {**BODY, "timeout_seconds": 5})
    assert remote.get_job(job_id).settings["timeout_seconds"] == 5


def test_error_names_the_call_that_was_not_answered(workspace, remote):
    remote._api.retry_timeout = 0
    for number in range(1, 5):
        workspace.faults.unavailable(number, "jobs/create")
    message = r"does not answer POST /api/2\.2/jobs/create within 0 seconds"
    with pytest.raises(DeploymentError, match=message) as raised:
        remote.create_job(BODY)
    assert "run the same command again" in raised.value.problems[0].fix
    assert raised.value.problems[0].where == workspace.url


def test_error_contains_the_message_of_the_platform(remote):
    with pytest.raises(DeploymentError, match=r"the workspace refuses POST /api/2\.2/jobs/create: .*cluster"):
        remote.create_job({**BODY, "job_clusters": []})
    with pytest.raises(DeploymentError, match="the workspace refuses POST"):
        remote.write_file("/Workspace/Shared/nowhere/file", b"")


def test_all_pages_are_read(remote):
    job_id = remote.create_job({**job(*(f"t{index:03d}" for index in range(150))), "tags": BODY["tags"]})
    assert len(remote.get_job(job_id).settings["tasks"]) == 150
    for _ in range(30):
        remote.start_run(job_id, "")
    assert len(remote.list_runs(job_id)) == MAX_RUNS


def test_stop_requests_are_written_only_to_volumes(workspace, remote):
    (workspace.directory / "Volumes/main/shop/checkpoints").mkdir(parents=True)
    assert remote.write_request("/Volumes/main/shop/checkpoints/stop.json", b"stop")
    assert (workspace.directory / "Volumes/main/shop/checkpoints/stop.json").read_bytes() == b"stop"
    assert not remote.write_request("dbfs:/checkpoints/stop.json", b"stop")
    workspace.faults.unavailable(1, "fs/files", retry_after=60)
    assert remote.list_directory("/Workspace/nowhere") == []
