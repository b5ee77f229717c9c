"""Workspace files: parents must exist, files are not overwritten by default, content is preserved byte by byte."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, InvalidParameterValue, ResourceAlreadyExists, ResourceDoesNotExist
from databricks.sdk.service.workspace import ExportFormat, ImportFormat, ObjectType

from headrace.testing.workspace import LocalWorkspace

BYTES = bytes(range(256)) + b"\r\n--\r\n\n\r"


def import_file(client: WorkspaceClient, path: str, content: bytes = BYTES, **query: bool) -> None:
    client.api_client.do("POST", f"/api/2.0/workspace-files/import-file{path}", query=query, data=content)


def test_content_is_preserved(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    import_file(client, "/Workspace/Shared/one.bin")
    client.workspace.upload("/Shared/two.bin", io.BytesIO(BYTES), format=ImportFormat.AUTO)
    client.workspace.import_("/Shared/three.bin", content=base64.b64encode(BYTES).decode(), format=ImportFormat.AUTO)
    for name in ("one", "two", "three"):
        assert client.workspace.download(f"/Shared/{name}.bin", format=ExportFormat.AUTO).read() == BYTES
        assert (workspace.directory / "Workspace" / "Shared" / f"{name}.bin").read_bytes() == BYTES
    exported = client.workspace.export("/Workspace/Shared/one.bin")
    assert exported.content is not None and base64.b64decode(exported.content) == BYTES


def test_missing_parent_is_an_error(client: WorkspaceClient) -> None:
    with pytest.raises(ResourceDoesNotExist, match="parent folder"):
        import_file(client, "/Workspace/Shared/no/where.txt")
    client.workspace.mkdirs("/Workspace/Shared/no")
    import_file(client, "/Workspace/Shared/no/where.txt")
    assert client.workspace.get_status("/Shared/no/where.txt").size == len(BYTES)


def test_file_is_overwritten_only_with_overwrite(client: WorkspaceClient) -> None:
    import_file(client, "/Workspace/Shared/a.txt", b"old")
    with pytest.raises(ResourceAlreadyExists):
        import_file(client, "/Workspace/Shared/a.txt", b"new")
    with pytest.raises(ResourceAlreadyExists):
        client.workspace.upload("/Shared/a.txt", io.BytesIO(b"new"), format=ImportFormat.AUTO)
    assert client.workspace.download("/Shared/a.txt").read() == b"old"
    import_file(client, "/Workspace/Shared/a.txt", b"new", overwrite=True)
    assert client.workspace.download("/Shared/a.txt").read() == b"new"


def test_mkdirs_creates_parents_and_can_be_repeated(client: WorkspaceClient) -> None:
    for _ in range(2):
        client.workspace.mkdirs("/Workspace/Shared/a/b/c")
    info = client.workspace.get_status("/Workspace/Shared/a/b")
    assert info.object_type == ObjectType.DIRECTORY
    assert info.object_id == client.workspace.get_status("/Shared/a/b").object_id
    import_file(client, "/Workspace/Shared/file", b"")
    with pytest.raises(ResourceAlreadyExists):
        client.workspace.mkdirs("/Workspace/Shared/file/below")


def test_list_is_sorted_and_can_be_recursive(client: WorkspaceClient) -> None:
    client.workspace.mkdirs("/Shared/empty")
    client.workspace.mkdirs("/Shared/r/conf")
    for name in ("b", "a", "conf/c"):
        import_file(client, f"/Workspace/Shared/r/{name}.yml")
    assert [entry.path for entry in client.workspace.list("/Shared/r")] == [
        "/Shared/r/a.yml",
        "/Shared/r/b.yml",
        "/Shared/r/conf",
    ]
    assert "/Shared/r/conf/c.yml" in [entry.path for entry in client.workspace.list("/Shared/r", recursive=True)]
    assert [entry.path for entry in client.workspace.list("/Shared/r/a.yml")] == ["/Shared/r/a.yml"]
    assert list(client.workspace.list("/Shared/empty")) == []
    with pytest.raises(ResourceDoesNotExist):
        list(client.workspace.list("/Shared/nothing"))


def test_directory_is_deleted_only_if_empty_or_with_recursive(client: WorkspaceClient) -> None:
    client.workspace.mkdirs("/Shared/d/e")
    with pytest.raises(BadRequest, match="not empty"):
        client.workspace.delete("/Shared/d")
    client.workspace.delete("/Shared/d", recursive=True)
    with pytest.raises(ResourceDoesNotExist):
        client.workspace.get_status("/Shared/d")
    with pytest.raises(ResourceDoesNotExist):
        client.workspace.delete("/Shared/d", recursive=True)


def test_each_user_has_a_home_directory(client: WorkspaceClient) -> None:
    me = client.current_user.me()
    assert me.user_name == "alice@example.com"
    assert client.workspace.get_status(f"/Users/{me.user_name}").object_type == ObjectType.DIRECTORY


@pytest.mark.parametrize("path", ["Shared/a", "/Shared/../../a", "/Shared/./a"])
def test_paths_cannot_escape_the_workspace(client: WorkspaceClient, path: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterValue):
        client.workspace.mkdirs(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["workspace"]


def test_only_import_file_accepts_large_files(client: WorkspaceClient) -> None:
    large = b"x" * (10 * 2**20 + 1)
    import_file(client, "/Workspace/Shared/large", large)
    with pytest.raises(BadRequest, match="limit"):
        client.workspace.download("/Shared/large").read()
    with pytest.raises(BadRequest, match="limit"):
        client.workspace.upload("/Shared/other", io.BytesIO(large), format=ImportFormat.AUTO)
