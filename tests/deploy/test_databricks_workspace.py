"""Calls that do not go as they should: lost answers, a service that is busy, and what is told of them."""

from __future__ import annotations

import pytest

from headrace.deploy.databricks_workspace import MOST_RUNS, Workspace
from headrace.errors import DeploymentError
from workspaces import job

BODY = {**job(), "tags": {"headrace": "tiny/staging/orders"}}


@pytest.fixture
def remote(workspace):
    return Workspace(workspace.url)


def test_a_job_whose_making_was_not_answered_is_found_again(workspace, remote):
    workspace.faults.drop_response(1, "jobs/create")
    made = remote.create_job(BODY)
    assert [found.id for found in remote.jobs_named("orders")] == [made]
    assert sum("create" in call.path for call in workspace.faults.calls) == 1


@pytest.mark.parametrize("fault", ["drop_request", "throttle", "unavailable", "broken"])
def test_a_job_whose_making_did_nothing_is_made_after_a_look(workspace, remote, fault):
    getattr(workspace.faults, fault)(1, "jobs/create")
    made = remote.create_job(BODY)
    assert [found.id for found in remote.jobs_named("orders")] == [made]
    assert [call.path.rpartition("/")[2] for call in workspace.faults.calls[:3]] == ["create", "list", "create"]


def test_another_job_of_that_name_is_not_taken_for_ours(workspace, remote):
    other = remote.create_job({**BODY, "tags": {"headrace": "tiny/prod/orders"}})
    workspace.faults.drop_response(2, "jobs/create")
    assert remote.create_job(BODY) != other
    assert len(remote.jobs_named("orders")) == 2


def test_a_new_file_whose_writing_was_not_answered_is_ours(workspace, remote):
    workspace.faults.drop_response(1, "import-file")
    assert remote.write_new("/Workspace/Shared/lock.json", b"mine")
    assert not remote.write_new("/Workspace/Shared/lock.json", b"theirs")
    assert remote.read("/Workspace/Shared/lock.json") == b"mine"


@pytest.mark.parametrize("fault", ["drop_request", "drop_response", "throttle", "unavailable"])
def test_what_may_be_repeated_is(workspace, remote, fault):
    number = remote.create_job(BODY)
    getattr(workspace.faults, fault)(1, "jobs/reset")
    remote.reset_job(number, {**BODY, "timeout_seconds": 5})
    found = remote.job(number)
    assert found.settings["timeout_seconds"] == 5


def test_a_service_that_stays_silent_is_told_with_what_was_tried(workspace, remote):
    remote._calls.patience = 0
    for number in range(1, 5):
        workspace.faults.unavailable(number, "jobs/create")
    with pytest.raises(
        DeploymentError, match=r"does not answer POST /api/2\.2/jobs/create, tried for 0 seconds"
    ) as told:
        remote.create_job(BODY)
    assert "run the same command again" in told.value.problems[0].fix
    assert told.value.problems[0].where == workspace.url


def test_what_the_platform_refuses_is_told_in_its_words(remote):
    with pytest.raises(DeploymentError, match=r"the workspace refuses POST /api/2\.2/jobs/create: .*cluster"):
        remote.create_job({**BODY, "job_clusters": []})
    with pytest.raises(DeploymentError, match="the workspace refuses POST"):
        remote.write("/Workspace/Shared/nowhere/file", b"")


def test_all_pages_are_read(remote):
    number = remote.create_job({**job(*(f"t{index:03d}" for index in range(150))), "tags": BODY["tags"]})
    assert len(remote.job(number).settings["tasks"]) == 150
    for _ in range(30):
        remote.start(number, "")
    assert len(remote.runs(number)) == MOST_RUNS


def test_a_request_is_left_in_a_volume_only(workspace, remote):
    (workspace.directory / "Volumes/main/shop/checkpoints").mkdir(parents=True)
    assert remote.ask("/Volumes/main/shop/checkpoints/stop.json", b"stop")
    assert (workspace.directory / "Volumes/main/shop/checkpoints/stop.json").read_bytes() == b"stop"
    assert not remote.ask("dbfs:/checkpoints/stop.json", b"stop")
    workspace.faults.unavailable(1, "fs/files", retry_after=60)
    assert remote.names("/Workspace/nowhere") == []
