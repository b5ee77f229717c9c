"""A restart restores everything from the directory; only one process can serve a directory."""

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


def test_restart_restores_everything(tmp_path: Path) -> None:
    with LocalWorkspace(tmp_path, execute=False) as workspace:
        client = workspace.client("alice")
        url = workspace.url
        client.workspace.mkdirs("/Shared/release")
        client.files.upload("/Volumes/main/shop/data/a", io.BytesIO(b"1"))
        once, continuous_job = create(client, job(tags={"a": "b"})), create(client, continuous())
        grant = JobAccessControlRequest(group_name="users", permission_level=JobPermissionLevel.CAN_VIEW)
        client.jobs.update_permissions(str(once), access_control_list=[grant])
        ended = start(client, once, idempotency_token="t")
        wait_until(lambda: state(client, ended) == "SUCCESS", "the run")
        (active,) = client.jobs.list_runs(job_id=continuous_job)
        number = client.workspace.get_status("/Shared/release").object_id
        before = client.jobs.get(once).as_dict()

    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=10)

    with workspace:
        client = workspace.client("alice")
        assert workspace.url == url
        assert client.workspace.get_status("/Shared/release").object_id == number
        assert client.files.get_metadata("/Volumes/main/shop/data/a").content_length == 1
        assert client.jobs.get(once).as_dict() == before
        assert len(client.jobs.get_permissions(str(once)).access_control_list or []) == 3
        assert start(client, once, idempotency_token="t") == ended
        assert state(client, active.run_id or 0) == "INTERNAL_ERROR"
        new, old = client.jobs.list_runs(job_id=continuous_job)
        assert old.run_id == active.run_id and new.state and new.state.life_cycle_state
        assert create(client, job()) > (new.run_id or 0)


def test_runs_of_a_killed_workspace_are_ended(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path, execute=False)
    with workspace:
        client = workspace.client()
        number = create(client, continuous())
        (run,) = client.jobs.list_runs(job_id=number)
        wait_until(lambda: state(client, run.run_id or 0) == "RUNNING", "the run")
        record = tmp_path / "state" / "runs" / f"{run.run_id}.json"
        content = record.read_bytes()
    record.write_bytes(content)  # as after a kill, which leaves the record of an active run
    with workspace:
        assert state(workspace.client(), run.run_id or 0) == "INTERNAL_ERROR"
        assert len(list(workspace.client().jobs.list_runs(job_id=number, active_only=True))) == 1


def test_directory_in_use_is_an_error(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    with LocalWorkspace(tmp_path, execute=False), pytest.raises(SetupError) as error:
        LocalWorkspace(tmp_path).start()
    golden("workspace/directory_in_use", str(error.value).replace(str(tmp_path), "DIRECTORY"))
    with LocalWorkspace(tmp_path, execute=False):
        pass


def test_stop_closes_open_connections(tmp_path: Path) -> None:
    with LocalWorkspace(tmp_path, execute=False) as workspace, requests.Session() as session:
        discovery = f"{workspace.url}/.well-known/databricks-config"
        assert session.get(discovery, timeout=10).ok
        workspace.stop()
        with pytest.raises(requests.ConnectionError):
            session.get(discovery, timeout=10)
