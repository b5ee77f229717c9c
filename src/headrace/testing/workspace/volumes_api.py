"""Files of volumes: what /api/2.0/fs/files and /api/2.0/fs/directories do, over a directory."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

from headrace.testing.workspace.http_messages import Answer, ApiError, Document, Request, invalid
from headrace.testing.workspace.store import Store, parts, write
from headrace.testing.workspace.workspace_paths import VOLUMES, segments

VOLUME = 4  # names down to a volume: /Volumes/catalog/schema/volume
NOTHING = Answer(204, b"")


class Volumes:
    """Files and directories below /Volumes; a volume is there as soon as it is named."""

    def __init__(self, store: Store) -> None:
        self._root = store.directory

    def upload(self, request: Request) -> Answer:
        """Writes a file; one that is there is replaced unless the call says no."""
        place = self._place(request)
        if not place.parent.is_dir():
            raise ApiError(404, "NOT_FOUND", "The directory being accessed is not found.")
        if place.is_dir():
            raise ApiError(409, "ALREADY_EXISTS", "A directory already exists at this path.")
        try:
            write(place, request.body, overwrite=request.query.get("overwrite") != "false")
        except FileExistsError:
            raise ApiError(409, "ALREADY_EXISTS", "The file being created already exists.") from None
        return NOTHING

    def download(self, request: Request) -> Answer:
        """The bytes of a file; a HEAD asks for the headers alone."""
        place = self._place(request)
        if not place.is_file():
            raise ApiError(404, "NOT_FOUND", "The file being accessed is not found.")
        changed = formatdate(place.stat().st_mtime, usegmt=True)
        return Answer(200, place.read_bytes(), "application/octet-stream", {"Last-Modified": changed})

    def delete(self, request: Request) -> Answer:
        """Deletes a file."""
        place = self._place(request)
        if not place.is_file():
            raise ApiError(404, "NOT_FOUND", "The file being accessed is not found.")
        place.unlink()
        return NOTHING

    def make_directory(self, request: Request) -> Answer:
        """Makes a directory and those above it; nothing when it is there."""
        try:
            self._place(request).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ApiError(409, "ALREADY_EXISTS", "A file already exists at this path.") from None
        return NOTHING

    def list_directory(self, request: Request) -> Document | Answer:
        """What lies in a directory; a HEAD asks whether it is there."""
        place = self._directory(request)
        if request.method == "HEAD":
            return NOTHING
        return {"contents": [_entry(child, f"/{child.relative_to(self._root)}") for child in parts(place)]}

    def delete_directory(self, request: Request) -> Answer:
        """Deletes a directory that is empty."""
        place = self._directory(request)
        if any(parts(place)):
            raise ApiError(400, "DIRECTORY_NOT_EMPTY", "The directory is not empty.")
        place.rmdir()
        return NOTHING

    def _directory(self, request: Request) -> Path:
        place = self._place(request)
        if not place.is_dir():
            raise ApiError(404, "NOT_FOUND", "The directory being accessed is not found.")
        return place

    def _place(self, request: Request) -> Path:
        path = "/" + request.rest[0].strip("/")
        names = segments(path)
        if names[:1] != [VOLUMES] or len(names) < VOLUME:
            raise invalid(f"Path ({path}) is not in a volume: /Volumes/catalog/schema/volume")
        self._root.joinpath(*names[:VOLUME]).mkdir(parents=True, exist_ok=True)
        return self._root.joinpath(*names)


def _entry(place: Path, path: str) -> Document:
    told = place.stat()
    entry: Document = {"path": path, "name": place.name, "is_directory": place.is_dir()}
    if place.is_file():
        entry |= {"file_size": told.st_size}
    return {**entry, "last_modified": int(told.st_mtime * 1000)}
