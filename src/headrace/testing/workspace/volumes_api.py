"""Files of volumes, stored in a directory: the endpoints of /api/2.0/fs/files and /api/2.0/fs/directories."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

from headrace.testing.workspace.http_messages import ApiError, Document, Request, Response, invalid_parameter
from headrace.testing.workspace.store import Store, list_entries, write_file
from headrace.testing.workspace.workspace_paths import VOLUMES, split_path

VOLUME_DEPTH = 4  # names in the path of a volume: /Volumes/catalog/schema/volume
NO_CONTENT = Response(204, b"")


class Volumes:
    """Files and directories below /Volumes. The first call with a path in a volume creates the volume."""

    def __init__(self, store: Store) -> None:
        self._root = store.directory

    def upload(self, request: Request) -> Response:
        """Write a file; replace an existing one unless `overwrite` is false."""
        local_path = self._local_path(request)
        if not local_path.parent.is_dir():
            raise ApiError(404, "NOT_FOUND", "The directory being accessed is not found.")
        if local_path.is_dir():
            raise ApiError(409, "ALREADY_EXISTS", "A directory already exists at this path.")
        try:
            write_file(local_path, request.body, overwrite=request.query.get("overwrite") != "false")
        except FileExistsError:
            raise ApiError(409, "ALREADY_EXISTS", "The file being created already exists.") from None
        return NO_CONTENT

    def download(self, request: Request) -> Response:
        """Return the content of a file; the response to a HEAD request has headers only."""
        local_path = self._file(request)
        modified = formatdate(local_path.stat().st_mtime, usegmt=True)
        return Response(200, local_path.read_bytes(), "application/octet-stream", {"Last-Modified": modified})

    def delete(self, request: Request) -> Response:
        """Delete a file."""
        self._file(request).unlink()
        return NO_CONTENT

    def create_directory(self, request: Request) -> Response:
        """Create a directory and its parents if they do not exist."""
        try:
            self._local_path(request).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ApiError(409, "ALREADY_EXISTS", "A file already exists at this path.") from None
        return NO_CONTENT

    def list_directory(self, request: Request) -> Document | Response:
        """Return the entries of a directory; the response to a HEAD request has no body."""
        directory = self._directory(request)
        if request.method == "HEAD":
            return NO_CONTENT
        return {"contents": [_info(entry, f"/{entry.relative_to(self._root)}") for entry in list_entries(directory)]}

    def delete_directory(self, request: Request) -> Response:
        """Delete an empty directory."""
        directory = self._directory(request)
        if any(list_entries(directory)):
            raise ApiError(400, "DIRECTORY_NOT_EMPTY", "The directory is not empty.")
        directory.rmdir()
        return NO_CONTENT

    def _file(self, request: Request) -> Path:
        local_path = self._local_path(request)
        if not local_path.is_file():
            raise ApiError(404, "NOT_FOUND", "The file being accessed is not found.")
        return local_path

    def _directory(self, request: Request) -> Path:
        local_path = self._local_path(request)
        if not local_path.is_dir():
            raise ApiError(404, "NOT_FOUND", "The directory being accessed is not found.")
        return local_path

    def _local_path(self, request: Request) -> Path:
        """Return the local path of the file or directory in the URL. Create its volume if it does not exist."""
        path = "/" + request.path_parameters[0].strip("/")
        names = split_path(path)
        if names[:1] != [VOLUMES] or len(names) < VOLUME_DEPTH:
            raise invalid_parameter(f"Path ({path}) is not in a volume: /Volumes/catalog/schema/volume")
        self._root.joinpath(*names[:VOLUME_DEPTH]).mkdir(parents=True, exist_ok=True)
        return self._root.joinpath(*names)


def _info(local_path: Path, path: str) -> Document:
    stat = local_path.stat()
    info: Document = {"path": path, "name": local_path.name, "is_directory": local_path.is_dir()}
    if local_path.is_file():
        info |= {"file_size": stat.st_size}
    return {**info, "last_modified": int(stat.st_mtime * 1000)}
