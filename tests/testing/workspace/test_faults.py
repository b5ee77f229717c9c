"""Fault injection: which call fails, and whether it took effect."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import NotFound

from headrace.errors import SetupError
from headrace.testing.workspace import LocalWorkspace
from workspaces import create, job


def count_jobs(client: WorkspaceClient) -> int:
    return len(list(client.jobs.list()))


def test_dropped_request_has_no_effect(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.drop_request(1, "jobs/create")
    with pytest.raises(TimeoutError):
        create(client, job())
    assert count_jobs(client) == 0


def test_dropped_response_leaves_the_job(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.drop_response(1, "jobs/create")
    with pytest.raises(TimeoutError):
        create(client, job())
    assert count_jobs(client) == 1


def test_client_retry_creates_a_second_job(workspace: LocalWorkspace) -> None:
    workspace.faults.drop_response(1)
    retrying_client = workspace.client(retry_timeout_seconds=10)
    create(retrying_client, job())
    assert count_jobs(retrying_client) == 2


def test_throttled_client_retries(workspace: LocalWorkspace) -> None:
    retrying_client = workspace.client(retry_timeout_seconds=10)
    workspace.faults.throttle(1, "jobs/create", retry_after=0)
    workspace.faults.unavailable(2, "jobs/create", retry_after=0)
    create(retrying_client, job())
    assert [call.path for call in workspace.faults.calls] == ["/api/2.2/jobs/create"] * 3
    assert count_jobs(retrying_client) == 1


def test_slow_response_arrives(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.slow(1, 0.2)
    start = time.monotonic()
    create(client, job())
    assert time.monotonic() - start >= 0.2


def test_on_call_is_called_before_and_after_each_call(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    seen: list[tuple[int, str, int]] = []
    documents = workspace._store.all
    workspace.faults.on_call = lambda number, when: seen.append((number, when, len(documents("jobs"))))
    create(client, job())
    client.current_user.me()
    assert seen == [(1, "before", 0), (1, "after", 1), (2, "before", 1), (2, "after", 1)]
    assert workspace.faults.calls == [("POST", "/api/2.2/jobs/create"), ("GET", "/api/2.0/preview/scim/v2/Me")]
    workspace.faults.reset()
    assert workspace.faults.calls == []


def test_unknown_endpoint_is_not_found(workspace: LocalWorkspace) -> None:
    with pytest.raises(NotFound, match="No API found"):
        workspace.client().api_client.do("GET", "/api/2.0/clusters/list")


def test_port_in_use_is_an_error(workspace: LocalWorkspace, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    port = workspace.url.rpartition(":")[2]
    for _ in range(2):  # the first failure unlocks the directory
        with pytest.raises(SetupError) as error:
            LocalWorkspace(tmp_path / "other", int(port)).start()
        golden("workspace/port_in_use", str(error.value).replace(port, "PORT"))


def test_incomplete_call_is_ignored(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    port = int(workspace.url.rpartition(":")[2])
    for head in (b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n9\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            path = b"/api/2.0/workspace-files/import-file/Shared/half"
            login = f"Host: localhost\r\nAuthorization: Bearer {workspace.token}\r\n".encode()
            connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + login + head + b"half")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert workspace.faults.calls == []
    assert list(client.workspace.list("/Shared")) == []
