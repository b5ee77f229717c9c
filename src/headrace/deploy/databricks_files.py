"""The files of a Databricks workspace and of its volumes, called over its REST API."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from headrace.deploy.remote import UNKNOWN_SIZE
from headrace.deploy.sdk_calls import REPEAT, ExistsError, UnknownOutcomeError, WorkspaceApi
from headrace.errors import DeploymentError

WORKSPACE_API, VOLUME_FILES_API = "/api/2.0/workspace", "/api/2.0/fs/files"
WORKSPACE_FILES_API = "/api/2.0/workspace-files"  # serves files of any size; undocumented, used by the official tool
IMPORT_FILE_API = f"{WORKSPACE_FILES_API}/import-file"
TOO_LARGE = "MAX_NOTEBOOK_SIZE_EXCEEDED"  # the error code of an export of more than 10 MB


class WorkspaceFiles:
    """The files of one workspace."""

    def __init__(self, api: WorkspaceApi) -> None:
        self._api, self._call = api, api.call

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        query = {"path": path, "format": "AUTO"}
        try:
            exported = self._call("GET", f"{WORKSPACE_API}/export", query=query, missing=None)
            return None if exported is None else base64.b64decode(exported["content"], validate=True)
        except DeploymentError as error:
            if getattr(error.__cause__, "error_code", "") != TOO_LARGE:
                raise
            return self._api.download(f"{WORKSPACE_FILES_API}{quote(path)}")
        except (KeyError, TypeError, ValueError) as error:
            raise DeploymentError(
                f"the workspace returns no content of {path}", where=self._api.host, fix=REPEAT
            ) from error

    def write_file(self, path: str, content: bytes) -> None:
        """Write or replace a file."""
        self._call("POST", f"{IMPORT_FILE_API}{quote(path)}", query={"overwrite": "true"}, data=content)

    def create_file(self, path: str, content: bytes) -> bool:
        """Create a file and return True, or return False if it exists.

        If the response to the call is lost, the content of the file shows whether this call created it.
        """
        try:
            self._call("POST", f"{IMPORT_FILE_API}{quote(path)}", query={"overwrite": "false"}, data=content, once=True)
        except (ExistsError, UnknownOutcomeError) as error:
            existing = self.read_file(path)
            if existing is not None:
                return existing == content
            if isinstance(error, UnknownOutcomeError):
                raise self._api.no_answer(*error.call, error) from error
            return False  # the file existed, and was deleted in the meantime
        return True

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they do not exist."""
        self._call("POST", f"{WORKSPACE_API}/mkdirs", body={"path": path})

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory; an empty list if it does not exist."""
        return [item["path"].rpartition("/")[2] for item in self._list(path)]

    def file_sizes(self, path: str) -> dict[str, int]:
        """Return the sizes of all files below a directory, by their paths in it; none if it does not exist.

        A size that the workspace does not return is UNKNOWN_SIZE.
        """
        sizes: dict[str, int] = {}
        for item in self._list(path):
            name = item["path"].rpartition("/")[2]
            if item["object_type"] == "DIRECTORY":
                sizes |= {f"{name}/{inner}": size for inner, size in self.file_sizes(item["path"]).items()}
            else:
                sizes[name] = int(item.get("size", UNKNOWN_SIZE))
        return sizes

    def _list(self, path: str) -> list[dict[str, Any]]:
        listing = self._call("GET", f"{WORKSPACE_API}/list", query={"path": path}, missing={})
        objects: list[dict[str, Any]] = listing.get("objects", [])
        return objects

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""
        self._call("POST", f"{WORKSPACE_API}/delete", body={"path": path, "recursive": True}, missing=None)

    def grant_read(self, directory: str, principal: dict[str, str]) -> None:
        """Grant a user, a group or a service principal read access to a directory."""
        object_id = self._call("GET", f"{WORKSPACE_API}/get-status", query={"path": directory})["object_id"]
        grant = {"access_control_list": [{**principal, "permission_level": "CAN_READ"}]}
        self._call("PATCH", f"/api/2.0/permissions/directories/{object_id}", body=grant)

    def write_request(self, path: str, content: bytes) -> bool:
        """Write a stop request and return True. Return False if the path is not in a volume or not writable."""
        if not path.startswith("/Volumes/"):
            return False
        try:
            self._call("PUT", f"{VOLUME_FILES_API}{quote(path)}", query={"overwrite": "true"}, data=content)
        except DeploymentError:
            return False
        return True

    def delete_request(self, path: str) -> None:
        """Delete a stop request if it exists. Do nothing for paths that `write_request` could not write either."""
        if path.startswith("/Volumes/"):
            with suppress(DeploymentError):
                self._call("DELETE", f"{VOLUME_FILES_API}{quote(path)}", missing=None)

    def read_checkpoint_file(self, path: str) -> bytes | None:
        """Return the content of a file in a volume, or None if it does not exist or is not in a volume."""
        if not path.startswith("/Volumes/"):
            return None
        return self._api.download(f"{VOLUME_FILES_API}{quote(path)}")
