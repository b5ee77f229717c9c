"""A restart over the same directory knows everything; one directory is served once."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from databricks.sdk.service.jobs import JobAccessControlRequest, JobPermissionLevel

from headrace.errors import SetupError
from headrace.testing.workspace import LocalWorkspace
from processes import wait_until
from workspaces import continuous, create, job, start, state


def test_a_restart_knows_everything(tmp_path: Path) -> None:
    with LocalWorkspace(tmp_path, execute=False) as workspace:
        client = workspace.client("alice")
        url = workspace.url
        client.workspace.mkdirs("/Shared/kept")
        client.files.upload("/Volumes/main/shop/data/a", io.BytesIO(b"1"))
        once, always = create(client, job(tags={"a": "b"})), create(client, continuous())
        grant = JobAccessControlRequest(group_name="users", permission_level=JobPermissionLevel.CAN_VIEW)
        client.jobs.update_permissions(str(once), access_control_list=[grant])
        ended = start(client, once, idempotency_token="t")
        wait_until(lambda: state(client, ended) == "SUCCESS", "the run")
        (going,) = client.jobs.list_runs(job_id=always)
        number = client.workspace.get_status("/Shared/kept").object_id
        before = client.jobs.get(once).as_dict()

    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=10)

    with workspace:
        client = workspace.client("alice")
        assert workspace.url == url
        assert client.workspace.get_status("/Shared/kept").object_id == number
        assert client.files.get_metadata("/Volumes/main/shop/data/a").content_length == 1
        assert client.jobs.get(once).as_dict() == before
        assert len(client.jobs.get_permissions(str(once)).access_control_list or []) == 3
        assert start(client, once, idempotency_token="t") == ended
        assert state(client, going.run_id or 0) == "INTERNAL_ERROR"
        new, old = client.jobs.list_runs(job_id=always)
        assert old.run_id == going.run_id and new.state and new.state.life_cycle_state
        assert create(client, job()) > (new.run_id or 0)


def test_runs_of_a_killed_service_are_ended(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path, execute=False)
    with workspace:
        client = workspace.client()
        number = create(client, continuous())
        (run,) = client.jobs.list_runs(job_id=number)
        wait_until(lambda: state(client, run.run_id or 0) == "RUNNING", "the run")
        record = tmp_path / "state" / "runs" / f"{run.run_id}.json"
        as_it_was = record.read_bytes()
    record.write_bytes(as_it_was)  # as after a kill: nothing was written at the end
    with workspace:
        assert state(workspace.client(), run.run_id or 0) == "INTERNAL_ERROR"
        assert len(list(workspace.client().jobs.list_runs(job_id=number, active_only=True))) == 1


def test_one_directory_is_served_once(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    with LocalWorkspace(tmp_path, execute=False), pytest.raises(SetupError) as refused:
        LocalWorkspace(tmp_path).start()
    golden("workspace/taken_directory", str(refused.value).replace(str(tmp_path), "DIRECTORY"))
    with LocalWorkspace(tmp_path, execute=False):
        pass


def test_a_connection_kept_open_does_not_outlive_the_service(tmp_path: Path) -> None:
    with LocalWorkspace(tmp_path, execute=False) as workspace, requests.Session() as session:
        ask = f"{workspace.url}/.well-known/databricks-config"
        assert session.get(ask, timeout=10).ok
        workspace.stop()
        with pytest.raises(requests.ConnectionError):
            session.get(ask, timeout=10)
