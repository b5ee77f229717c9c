"""Files of volumes, through the files API of the client."""

from __future__ import annotations

import io

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import AlreadyExists, BadRequest, InvalidParameterValue, NotFound

from headrace.testing.workspace import LocalWorkspace

ROOT = "/Volumes/main/shop/data"


def test_upload_download_and_delete(client: WorkspaceClient, workspace: LocalWorkspace) -> None:
    client.files.upload(f"{ROOT}/a b.json", io.BytesIO(b"\x00\r\n"))
    contents = client.files.download(f"{ROOT}/a b.json").contents
    assert contents is not None and contents.read() == b"\x00\r\n"
    assert client.files.get_metadata(f"{ROOT}/a b.json").content_length == 3
    assert (workspace.directory / "Volumes/main/shop/data/a b.json").read_bytes() == b"\x00\r\n"
    client.files.delete(f"{ROOT}/a b.json")
    for call in (client.files.download, client.files.get_metadata, client.files.delete):
        with pytest.raises(NotFound):
            call(f"{ROOT}/a b.json")


def test_upload_needs_a_parent_and_respects_overwrite(client: WorkspaceClient) -> None:
    with pytest.raises(NotFound):
        client.files.upload(f"{ROOT}/sub/a", io.BytesIO(b"1"))
    client.files.create_directory(f"{ROOT}/sub")
    client.files.upload(f"{ROOT}/sub/a", io.BytesIO(b"1"))
    with pytest.raises(AlreadyExists):
        client.files.upload(f"{ROOT}/sub/a", io.BytesIO(b"2"), overwrite=False)
    client.files.upload(f"{ROOT}/sub/a", io.BytesIO(b"3"), overwrite=True)


def test_directories_are_created_listed_and_deleted(client: WorkspaceClient) -> None:
    with pytest.raises(NotFound):
        client.files.get_directory_metadata(f"{ROOT}/d")
    for _ in range(2):
        client.files.create_directory(f"{ROOT}/d/e")
    client.files.get_directory_metadata(f"{ROOT}/d/e")
    client.files.upload(f"{ROOT}/d/f", io.BytesIO(b"123"))
    contents = client.files.list_directory_contents(f"{ROOT}/d")
    entries = [(entry.name, entry.path, entry.is_directory) for entry in contents]
    assert entries == [("e", f"{ROOT}/d/e", True), ("f", f"{ROOT}/d/f", False)]
    with pytest.raises(BadRequest, match="not empty"):
        client.files.delete_directory(f"{ROOT}/d")
    client.files.delete_directory(f"{ROOT}/d/e")
    with pytest.raises(NotFound):
        list(client.files.list_directory_contents(f"{ROOT}/d/e"))


@pytest.mark.parametrize("path", ["/Workspace/Shared/a", "/Volumes/main/a", "/Volumes/main/shop/data/../../../a"])
def test_path_outside_of_volumes_is_an_error(client: WorkspaceClient, path: str) -> None:
    with pytest.raises(InvalidParameterValue):
        client.files.upload(path, io.BytesIO(b""))
