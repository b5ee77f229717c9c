"""Faults on demand: which call is hit, and what of it took effect."""

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


def jobs(client: WorkspaceClient) -> int:
    return len(list(client.jobs.list()))


def test_a_call_lost_before_it_took_effect(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.before(1, "jobs/create")
    with pytest.raises(TimeoutError):
        create(client, job())
    assert jobs(client) == 0


def test_a_lost_answer_leaves_the_job(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.after(1, "jobs/create")
    with pytest.raises(TimeoutError):
        create(client, job())
    assert jobs(client) == 1


def test_a_client_that_tries_again_makes_a_second_job(workspace: LocalWorkspace) -> None:
    workspace.faults.after(1)
    patient = workspace.client(retry_timeout_seconds=10)
    create(patient, job())
    assert jobs(patient) == 2


def test_a_throttled_client_comes_again(workspace: LocalWorkspace) -> None:
    patient = workspace.client(retry_timeout_seconds=10)
    workspace.faults.throttle(1, "jobs/create", retry_after=0)
    workspace.faults.unavailable(2, "jobs/create", retry_after=0)
    create(patient, job())
    assert [call.path for call in workspace.faults.calls] == ["/api/2.2/jobs/create"] * 3
    assert jobs(patient) == 1


def test_a_slow_answer_comes(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    workspace.faults.slow(1, 0.2)
    begun = time.monotonic()
    create(client, job())
    assert time.monotonic() - begun >= 0.2


def test_calls_are_numbered_and_told_around_their_effect(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    seen: list[tuple[int, str, int]] = []
    count = workspace._store.all
    workspace.faults.on_call = lambda number, when: seen.append((number, when, len(count("jobs"))))
    create(client, job())
    client.current_user.me()
    assert seen == [(1, "before", 0), (1, "after", 1), (2, "before", 1), (2, "after", 1)]
    assert workspace.faults.calls == [("POST", "/api/2.2/jobs/create"), ("GET", "/api/2.0/preview/scim/v2/Me")]
    workspace.faults.reset()
    assert workspace.faults.calls == []


def test_an_unknown_endpoint_is_not_found(workspace: LocalWorkspace) -> None:
    with pytest.raises(NotFound, match="No API found"):
        workspace.client().api_client.do("GET", "/api/2.0/clusters/list")


def test_a_taken_port_is_told(workspace: LocalWorkspace, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    port = workspace.url.rpartition(":")[2]
    for _ in range(2):  # and the directory is free again
        with pytest.raises(SetupError) as refused:
            LocalWorkspace(tmp_path / "other", int(port)).start()
        golden("workspace/taken_port", str(refused.value).replace(port, "PORT"))


def test_half_a_call_is_none(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    port = int(workspace.url.rpartition(":")[2])
    for head in (b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n9\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as dying:
            path = b"/api/2.0/workspace-files/import-file/Shared/half"
            login = f"Host: localhost\r\nAuthorization: Bearer {workspace.token}\r\n".encode()
            dying.sendall(b"POST " + path + b" HTTP/1.1\r\n" + login + head + b"half")
            dying.shutdown(socket.SHUT_WR)
            assert dying.recv(1) == b""
    assert workspace.faults.calls == []
    assert list(client.workspace.list("/Shared")) == []
