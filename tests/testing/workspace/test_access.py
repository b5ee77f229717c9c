"""Access to the workspace: only with tokens that it issued, and with Host headers of this machine."""

from __future__ import annotations

import socket
from http.client import HTTPConnection
from pathlib import Path

import pytest
import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import PermissionDenied, Unauthenticated

from headrace.testing.workspace import LocalWorkspace
from workspaces import create, job

LIST = "/api/2.2/jobs/list"
IMPORT = "/api/2.0/workspace-files/import-file/Shared/uploaded"
DISCOVERY = "/.well-known/databricks-config"


def call(workspace: LocalWorkspace, path: str = LIST, method: str = "GET", **arguments: object) -> requests.Response:
    headers = {"Authorization": f"Bearer {workspace.token}", **arguments.pop("headers", {})}  # type: ignore[dict-item]
    present = {name: value for name, value in headers.items() if value is not None}
    return requests.request(method, workspace.url + path, headers=present, timeout=10, **arguments)  # type: ignore[arg-type]


def test_each_workspace_has_a_random_token(tmp_path: Path) -> None:
    tokens = {LocalWorkspace(tmp_path).token for _ in range(3)}
    assert len(tokens) == 3
    assert min(len(token) for token in tokens) > 40


def test_only_issued_tokens_are_accepted(workspace: LocalWorkspace) -> None:
    assert call(workspace).status_code == 200
    for token in ("me", "alice", workspace.token[:-1], workspace.token + "x", "é", ""):
        response = call(workspace, headers={"Authorization": f"Bearer {token}".encode()})
        assert response.status_code == (403 if token else 401), token
    assert response.json()["error_code"] == 401
    assert call(workspace, headers={"Authorization": "Bearer me"}).json() == {
        "error_code": 403,
        "message": "Invalid access token.",
    }
    for header in (None, workspace.token, f"Basic {workspace.token}"):
        assert call(workspace, headers={"Authorization": header}).status_code == 401, header


def test_official_client_reports_a_failed_login(workspace: LocalWorkspace) -> None:
    for token, error in (("me", PermissionDenied), (" ", Unauthenticated)):
        client = WorkspaceClient(host=workspace.url, token="-", auth_type="pat")
        client.config._header_factory = lambda token=token: {"Authorization": f"Bearer {token}"}
        with pytest.raises(error, match="Invalid access token" if token == "me" else "Credential was not sent"):
            client.current_user.me()


def test_token_belongs_to_one_user_and_survives_a_restart(workspace: LocalWorkspace) -> None:
    token = workspace.token_for("bob")
    assert token not in (workspace.token, workspace.token_for("alice"), workspace.token_for("bob@other.com"))
    assert workspace.token_for("bob") == workspace.token_for("bob@example.com") == token
    workspace.stop()
    workspace.start()
    client = WorkspaceClient(host=workspace.url, token=token, auth_type="pat")
    assert client.current_user.me().user_name == "bob@example.com"
    assert workspace.client().current_user.me().user_name == "me@example.com"


def test_user_name_cannot_escape_the_directory_of_homes(workspace: LocalWorkspace) -> None:
    assert workspace.client("../../b o").current_user.me().user_name == "..-..-b-o@example.com"
    assert sorted(home.name for home in (workspace.directory / "Workspace/Users").iterdir()) == [
        "..-..-b-o@example.com"
    ]


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:7171", "[::1]"])
def test_loopback_hosts_are_accepted(workspace: LocalWorkspace, host: str) -> None:
    for path in (LIST, DISCOVERY):
        assert call(workspace, path, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example.com", "127.0.0.1.evil.com", "localhost.evil.com:7171", "127.0.0.1@evil.com", "10.0.0.1", ""]
)
def test_other_hosts_are_rejected(workspace: LocalWorkspace, host: str) -> None:
    for path in (LIST, DISCOVERY):
        response = call(workspace, path, headers={"Host": host})
        assert (response.status_code, response.json()["error_code"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("hosts", [b"", b"Host: localhost\r\nHost: evil.example.com\r\n"])
def test_call_needs_exactly_one_host_header(workspace: LocalWorkspace, hosts: bytes) -> None:
    login = f"Authorization: Bearer {workspace.token}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", int(workspace.url.rpartition(":")[2]))) as connection:
        connection.sendall(f"GET {LIST} HTTP/1.1\r\n".encode() + hosts + login)
        assert connection.recv(12) == b"HTTP/1.1 403"


@pytest.fixture(params=[{"Authorization": "Bearer me"}, {"Host": "evil.example.com"}], ids=["token", "host"])
def rejected_headers(request: pytest.FixtureRequest) -> dict[str, str]:
    return request.param  # type: ignore[no-any-return]


def test_rejected_call_has_no_effect(workspace: LocalWorkspace, rejected_headers: dict[str, str]) -> None:
    workspace.faults.broken(1)
    connection = HTTPConnection("127.0.0.1", int(workspace.url.rpartition(":")[2]), timeout=10)
    headers = {"Host": "localhost", "Authorization": f"Bearer {workspace.token}", **rejected_headers}
    connection.request("POST", IMPORT, body=b"x" * 2**23, headers=headers)  # sends it all before reading the response
    response = connection.getresponse()
    assert (response.status, response.headers["Connection"]) == (403, "close")
    connection.close()
    assert not (workspace.directory / "Workspace/Shared/uploaded").exists()
    assert workspace.faults.calls == []


def test_call_is_rejected_before_its_body_arrives(workspace: LocalWorkspace, rejected_headers: dict[str, str]) -> None:
    headers = {
        "Host": "localhost",
        "Authorization": f"Bearer {workspace.token}",
        **rejected_headers,
        "Content-Length": 2**40,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", int(workspace.url.rpartition(":")[2])), timeout=5) as connection:
        connection.sendall(f"POST {IMPORT} HTTP/1.1\r\n{head}\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 403"


def test_discovery_needs_no_token_unless_it_has_a_body(workspace: LocalWorkspace) -> None:
    response = call(workspace, DISCOVERY, headers={"Authorization": None})
    assert response.json() == {"oidc_endpoint": f"{workspace.url}/oidc", "workspace_id": "1"}
    assert call(workspace, DISCOVERY, data=b"x", headers={"Authorization": None}).status_code == 401


def test_rejected_call_closes_only_its_own_connection(workspace: LocalWorkspace) -> None:
    with requests.Session() as session:
        login = {"Authorization": f"Bearer {workspace.token}"}
        for headers, status in ((login, 200), ({}, 401), (login, 200)):
            assert session.get(workspace.url + LIST, headers=headers, timeout=10).status_code == status
    create(workspace.client("alice"), job())
