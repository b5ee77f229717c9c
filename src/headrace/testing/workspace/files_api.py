"""Workspace files, stored in a directory: the endpoints of /api/2.0/workspace and /api/2.0/workspace-files."""

from __future__ import annotations

import base64
import binascii
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from headrace.testing.workspace.http_messages import (
    ApiError,
    Document,
    Request,
    Response,
    does_not_exist,
    invalid_parameter,
)
from headrace.testing.workspace.store import Store, list_entries, write_file
from headrace.testing.workspace.workspace_paths import WORKSPACE, object_id, split_workspace_path

MAX_BYTES = 10 * 2**20  # limit of workspace/import and workspace/export; import-file accepts larger files


class WorkspaceFiles:
    """Files and directories below /Workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.root = store.directory / WORKSPACE
        for name in ("Shared", "Users"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def create_home(self, user: str) -> None:
        """Create the user's home directory if it does not exist."""
        (self.root / "Users" / user).mkdir(exist_ok=True)

    def mkdirs(self, request: Request) -> Document:
        """Create a directory and its parents if they do not exist."""
        path = request.required_text("path")
        try:
            self._local_path(path).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise _already_exists(path, 400) from None
        return {}

    def get_status(self, request: Request) -> Document:
        """Return the description of a file or a directory."""
        return self._info(request.required_text("path"))

    def list(self, request: Request) -> Document:
        """Return the entries of a directory; if the path is that of a file, only the file."""
        path = request.required_text("path").rstrip("/")
        local_path = self._existing(path or "/")
        if local_path.is_file():
            return {"objects": [self._info(path)]}
        objects = [self._info(f"{path}/{entry.name}") for entry in list_entries(local_path)]
        return {"objects": objects} if objects else {}

    def delete(self, request: Request) -> Document:
        """Delete a file or a directory. A directory that is not empty is deleted only if `recursive` is set."""
        path = request.required_text("path")
        local_path = self._existing(path)
        if local_path == self.root:
            raise invalid_parameter("The root directory cannot be deleted")
        if local_path.is_file():
            local_path.unlink()
            return {}
        if not request.flag("recursive") and any(list_entries(local_path)):
            raise ApiError(400, "DIRECTORY_NOT_EMPTY", f"Folder ({path}) is not empty")
        with self._store.lock:
            for directory in (local_path, *(entry for entry in local_path.rglob("*") if entry.is_dir())):
                self._store.delete("grants-directories", self._id(directory))
        shutil.rmtree(local_path)
        return {}

    def export(self, request: Request) -> Document | Response:
        """Return the content of a file: as base64 text in JSON, or with `direct_download` as bytes."""
        path = request.required_text("path")
        local_path = self._existing(path)
        if local_path.is_dir():
            raise invalid_parameter(f"Path ({path}) is a directory; only files can be exported")
        content = local_path.read_bytes()
        _require_allowed_size(content)
        if request.flag("direct_download"):
            return Response(body=content, content_type="application/octet-stream")
        return {"content": base64.b64encode(content).decode(), "file_type": local_path.suffix.removeprefix(".")}

    def import_(self, request: Request) -> Document:
        """Write a file whose content is base64 text in JSON, or an upload in a multipart form.

        An existing file is replaced only if `overwrite` is set; this also applies to `import_file`.
        """
        content = request.parameters().get("content", "")
        try:
            content = content if isinstance(content, bytes) else base64.b64decode(str(content), validate=True)
        except binascii.Error:
            raise invalid_parameter("The content is not base64") from None
        _require_allowed_size(content)
        self._write(request.required_text("path"), content, overwrite=request.flag("overwrite"), conflict_status=400)
        return {}

    def import_file(self, request: Request) -> Document:
        """Write a file whose content is the body of the request."""
        path = "/" + request.path_parameters[0].lstrip("/")
        self._write(path, request.body, overwrite=request.query.get("overwrite") == "true", conflict_status=409)
        return {}

    def download(self, request: Request) -> Response:
        """Return the content of a file of any size as bytes."""
        path = "/" + request.path_parameters[0].lstrip("/")
        local_path = self._existing(path)
        if local_path.is_dir():
            raise invalid_parameter(f"Path ({path}) is a directory")
        return Response(body=local_path.read_bytes(), content_type="application/octet-stream")

    def find_directory(self, directory_id: int) -> Path | None:
        """Return the directory with this object id, or None if there is none."""
        return next((directory for directory in self._directories() if self._id(directory) == directory_id), None)

    def _directories(self) -> Iterator[Path]:
        return (Path(directory) for directory, _, _ in os.walk(self.root))

    def _id(self, local_path: Path) -> int:
        return object_id(list(local_path.relative_to(self.root).parts))

    def _local_path(self, path: str) -> Path:
        return self.root.joinpath(*split_workspace_path(path))

    def _existing(self, path: str) -> Path:
        local_path = self._local_path(path)
        if not local_path.exists():
            raise does_not_exist(f"Path ({path}) doesn't exist.")
        return local_path

    def _write(self, path: str, content: bytes, *, overwrite: bool, conflict_status: int) -> None:
        local_path = self._local_path(path)
        if not local_path.parent.is_dir():
            raise does_not_exist(f"The parent folder ({path.rpartition('/')[0]}) does not exist.")
        if local_path.is_dir():
            raise _already_exists(path, conflict_status)
        try:
            write_file(local_path, content, overwrite=overwrite)
        except FileExistsError:
            raise _already_exists(path, conflict_status) from None

    def _info(self, path: str) -> Document:
        local_path = self._existing(path)
        stat = local_path.stat()
        number = self._id(local_path)
        info = {
            "object_type": "DIRECTORY" if local_path.is_dir() else "FILE",
            "path": "/" + path.strip("/"),
            "object_id": number,
            "resource_id": str(number),
        }
        if local_path.is_file():
            info |= {"size": stat.st_size, "modified_at": int(stat.st_mtime * 1000)}
            info |= {"created_at": int(stat.st_ctime * 1000)}
        return info


def _already_exists(path: str, status: int) -> ApiError:
    return ApiError(status, "RESOURCE_ALREADY_EXISTS", f"Path ({path}) already exists.")


def _require_allowed_size(content: bytes) -> None:
    if len(content) > MAX_BYTES:
        raise ApiError(400, "MAX_NOTEBOOK_SIZE_EXCEEDED", f"File size is over the limit of {MAX_BYTES} bytes")
