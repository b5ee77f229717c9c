"""Permissions of jobs and directories: stored and returned, but not enforced."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.testing.workspace.files_api import WorkspaceFiles
from headrace.testing.workspace.http_messages import Document, Request, does_not_exist, invalid_parameter
from headrace.testing.workspace.store import Store

LEVELS = {
    "jobs": ("CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", "IS_OWNER"),
    "directories": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
}
OBJECT_TYPES = {"jobs": "job", "directories": "directory"}
PRINCIPAL_FIELDS = ("user_name", "group_name", "service_principal_name")
OWNER = "IS_OWNER"


class Grant(NamedTuple):
    """A permission level that a principal has; `field` is the principal's kind, one of PRINCIPAL_FIELDS."""

    field: str
    principal: str
    level: str


class Permissions:
    """The grants on jobs and directories; a job always has one owner."""

    def __init__(self, store: Store, files: WorkspaceFiles) -> None:
        self._store, self._files = store, files

    def get(self, request: Request) -> Document:
        """Return all grants on an object, including the inherited ones."""
        kind, object_id = self._object(request)
        return self._document(kind, object_id, self._load(kind, object_id))

    def replace(self, request: Request) -> Document:
        """Replace all grants on an object. The grants on a job must include its owner."""
        kind, object_id = self._object(request)
        return self._save(kind, object_id, _requested_grants(request, kind))

    def update(self, request: Request) -> Document:
        """Add grants. They replace the earlier grants of the same principals; a new owner replaces the old owner."""
        kind, object_id = self._object(request)
        requested = _requested_grants(request, kind)
        principals = {(grant.field, grant.principal) for grant in requested}
        kept = [grant for grant in self._load(kind, object_id) if (grant.field, grant.principal) not in principals]
        if any(grant.level == OWNER for grant in requested):
            kept = [grant for grant in kept if grant.level != OWNER]
        return self._save(kind, object_id, kept + requested)

    def _save(self, kind: str, object_id: int, grants: list[Grant]) -> Document:
        owners = [grant for grant in grants if grant.level == OWNER]
        if kind == "jobs" and len(owners) != 1:
            raise invalid_parameter("The job must have exactly one owner.")
        self._store.put(f"grants-{kind}", object_id, {"grants": grants})
        return self._document(kind, object_id, grants)

    def _load(self, kind: str, object_id: int) -> list[Grant]:
        """Return the stored grants. If there are none, a job belongs to its creator, and a directory has no grants."""
        stored = self._store.get(f"grants-{kind}", object_id)
        if stored is not None:
            return [Grant(*fields) for fields in stored["grants"]]
        job = self._store.get("jobs", object_id) if kind == "jobs" else None
        return [Grant("user_name", job["creator_user_name"], OWNER)] if job else []

    def _object(self, request: Request) -> tuple[str, int]:
        """Return the kind and the id of the object in the path; raise ApiError if the object does not exist."""
        kind, text = request.path_parameters
        object_id = int(text) if text.isdigit() else 0
        existing = self._store.get("jobs", object_id) if kind == "jobs" else self._files.find_directory(object_id)
        if existing is None:
            raise does_not_exist(f"{OBJECT_TYPES[kind].capitalize()} {text} does not exist.")
        return kind, object_id

    def _document(self, kind: str, object_id: int, grants: list[Grant]) -> Document:
        direct = [_entry(grant) for grant in grants]
        inherited = _entry(Grant("group_name", "admins", "CAN_MANAGE"), inherited_from=f"/{kind}/")
        return {
            "object_id": f"/{kind}/{object_id}",
            "object_type": OBJECT_TYPES[kind],
            "access_control_list": [*direct, inherited],
        }


def _entry(grant: Grant, inherited_from: str = "") -> Document:
    permission: Document = {"permission_level": grant.level, "inherited": bool(inherited_from)}
    if inherited_from:
        permission["inherited_from_object"] = [inherited_from]
    return {grant.field: grant.principal, "all_permissions": [permission]}


def _requested_grants(request: Request, kind: str) -> list[Grant]:
    return [_parse_grant(entry, kind) for entry in request.parameters().get("access_control_list") or []]


def _parse_grant(entry: Any, kind: str) -> Grant:
    level = entry.get("permission_level") if isinstance(entry, dict) else None
    if level not in LEVELS[kind]:
        raise invalid_parameter(f"{level!r} is not a permission level of {kind}: {', '.join(LEVELS[kind])}")
    fields = [field for field in PRINCIPAL_FIELDS if entry.get(field)]
    if len(fields) != 1:
        raise invalid_parameter(f"A grant needs exactly one of {', '.join(PRINCIPAL_FIELDS)}")
    return Grant(fields[0], str(entry[fields[0]]), str(level))
