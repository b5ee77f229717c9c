"""Workspace files: what /api/2.0/workspace and /api/2.0/workspace-files do, over a directory."""

from __future__ import annotations

import base64
import binascii
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from headrace.testing.workspace.http_messages import Answer, ApiError, Document, Request, invalid, missing
from headrace.testing.workspace.store import Store, parts, write
from headrace.testing.workspace.workspace_paths import WORKSPACE, in_workspace, object_id

LIMIT = 10 * 2**20  # of workspace/import and workspace/export; import-file takes more


class WorkspaceFiles:
    """Files and directories below /Workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.root = store.directory / WORKSPACE
        for name in ("Shared", "Users"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def welcome(self, user: str) -> None:
        """Each user has a home."""
        (self.root / "Users" / user).mkdir(exist_ok=True)

    def mkdirs(self, request: Request) -> Document:
        """Makes a directory and those above it; nothing when it is there."""
        path = request.text("path")
        try:
            self._place(path).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise _exists(path, 400) from None
        return {}

    def get_status(self, request: Request) -> Document:
        """What stands at a path."""
        return self._info(request.text("path"))

    def list(self, request: Request) -> Document:
        """What lies in a directory, or the one file that the path names."""
        path = request.text("path").rstrip("/")
        place = self._existing(path or "/")
        if place.is_file():
            return {"objects": [self._info(path)]}
        found = [self._info(f"{path}/{child.name}") for child in parts(place)]
        return {"objects": found} if found else {}

    def delete(self, request: Request) -> Document:
        """Deletes a file or a directory; one that is not empty only when told so."""
        path = request.text("path")
        place = self._existing(path)
        if place == self.root:
            raise invalid("The root directory cannot be deleted")
        if place.is_file():
            place.unlink()
            return {}
        if not request.flag("recursive") and any(parts(place)):
            raise ApiError(400, "DIRECTORY_NOT_EMPTY", f"Folder ({path}) is not empty")
        with self._store.lock:
            for directory in (place, *(each for each in place.rglob("*") if each.is_dir())):
                self._store.drop("grants-directories", self._id(directory))
        shutil.rmtree(place)
        return {}

    def export(self, request: Request) -> Document | Answer:
        """The bytes of a file, in JSON or, with direct_download, as they are."""
        place = self._existing(request.text("path"))
        if place.is_dir():
            raise invalid(f"Path ({request.text('path')}) is a directory, and only files are exported here")
        content = place.read_bytes()
        _within_limit(content)
        if request.flag("direct_download"):
            return Answer(body=content, kind="application/octet-stream")
        return {"content": base64.b64encode(content).decode(), "file_type": place.suffix.removeprefix(".")}

    def import_(self, request: Request) -> Document:
        """Writes a file from base64 text, or from an uploaded form."""
        content = request.given().get("content", "")
        try:
            content = content if isinstance(content, bytes) else base64.b64decode(str(content), validate=True)
        except binascii.Error:
            raise invalid("The content is not base64") from None
        _within_limit(content)
        self._write(request.text("path"), content, overwrite=request.flag("overwrite"), taken=400)
        return {}

    def import_file(self, request: Request) -> Document:
        """Writes a file from the bytes of the body."""
        path = "/" + request.rest[0].lstrip("/")
        self._write(path, request.body, overwrite=request.query.get("overwrite") == "true", taken=409)
        return {}

    def directory_of(self, number: int) -> Path | None:
        """The directory with this object id."""
        return next((each for each in self._directories() if self._id(each) == number), None)

    def _directories(self) -> Iterator[Path]:
        return (Path(here) for here, _, _ in os.walk(self.root))

    def _id(self, place: Path) -> int:
        return object_id(list(place.relative_to(self.root).parts))

    def _place(self, path: str) -> Path:
        return self.root.joinpath(*in_workspace(path))

    def _existing(self, path: str) -> Path:
        place = self._place(path)
        if not place.exists():
            raise missing(f"Path ({path}) doesn't exist.")
        return place

    def _write(self, path: str, content: bytes, *, overwrite: bool, taken: int) -> None:
        place = self._place(path)
        if not place.parent.is_dir():
            raise missing(f"The parent folder ({path.rpartition('/')[0]}) does not exist.")
        if place.is_dir():
            raise _exists(path, taken)
        try:
            write(place, content, overwrite=overwrite)
        except FileExistsError:
            raise _exists(path, taken) from None

    def _info(self, path: str) -> Document:
        place = self._existing(path)
        told = place.stat()
        number = self._id(place)
        info = {
            "object_type": "DIRECTORY" if place.is_dir() else "FILE",
            "path": "/" + path.strip("/"),
            "object_id": number,
            "resource_id": str(number),
        }
        if place.is_file():
            info |= {"size": told.st_size, "modified_at": int(told.st_mtime * 1000)}
            info |= {"created_at": int(told.st_ctime * 1000)}
        return info


def _exists(path: str, status: int) -> ApiError:
    return ApiError(status, "RESOURCE_ALREADY_EXISTS", f"Path ({path}) already exists.")


def _within_limit(content: bytes) -> None:
    if len(content) > LIMIT:
        raise ApiError(400, "MAX_NOTEBOOK_SIZE_EXCEEDED", f"File size is over the limit of {LIMIT} bytes")
