"""Permissions of jobs and directories: stored and returned, but not enforced."""

from __future__ import annotations

from typing import Any

from headrace.testing.workspace.files_api import WorkspaceFiles
from headrace.testing.workspace.http_messages import Document, Request, does_not_exist, invalid_parameter
from headrace.testing.workspace.store import Store

LEVELS = {
    "jobs": ("CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", "IS_OWNER"),
    "directories": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
}
TYPES = {"jobs": "job", "directories": "directory"}
PRINCIPAL_FIELDS = ("user_name", "group_name", "service_principal_name")
OWNER = "IS_OWNER"
Grants = list[list[str]]  # principal field, principal, level


class Permissions:
    """The grants on jobs and directories; a job always has one owner."""

    def __init__(self, store: Store, files: WorkspaceFiles) -> None:
        self._store, self._files = store, files

    def get(self, request: Request) -> Document:
        """Return all grants on an object, including the inherited ones."""
        kind, number = self._object(request)
        return self._document(kind, number, self._load(kind, number))

    def replace(self, request: Request) -> Document:
        """Replace all grants on an object; those on a job must include its owner."""
        kind, number = self._object(request)
        return self._save(kind, number, _requested_grants(request, kind))

    def update(self, request: Request) -> Document:
        """Add grants to an object; they replace earlier grants of the same principals."""
        kind, number = self._object(request)
        requested = _requested_grants(request, kind)
        principals = [grant[:2] for grant in requested]
        kept = [grant for grant in self._load(kind, number) if grant[:2] not in principals]
        if any(grant[2] == OWNER for grant in requested):
            kept = [grant for grant in kept if grant[2] != OWNER]
        return self._save(kind, number, kept + requested)

    def _save(self, kind: str, number: int, grants: Grants) -> Document:
        owners = [grant for grant in grants if grant[2] == OWNER]
        if kind == "jobs" and len(owners) != 1:
            raise invalid_parameter("The job must have exactly one owner.")
        self._store.put(f"grants-{kind}", number, {"grants": grants})
        return self._document(kind, number, grants)

    def _load(self, kind: str, number: int) -> Grants:
        stored = self._store.get(f"grants-{kind}", number)
        if stored is not None:
            return list(stored["grants"])
        job = self._store.get("jobs", number) if kind == "jobs" else None
        return [["user_name", job["creator_user_name"], OWNER]] if job else []

    def _object(self, request: Request) -> tuple[str, int]:
        kind, text = request.path_parameters
        number = int(text) if text.isdigit() else 0
        target = self._store.get("jobs", number) if kind == "jobs" else self._files.find_directory(number)
        if target is None:
            raise does_not_exist(f"{TYPES[kind].capitalize()} {text} does not exist.")
        return kind, number

    def _document(self, kind: str, number: int, grants: Grants) -> Document:
        direct = [_entry(field, principal, level) for field, principal, level in grants]
        inherited = _entry("group_name", "admins", "CAN_MANAGE", inherited_from=f"/{kind}/")
        return {
            "object_id": f"/{kind}/{number}",
            "object_type": TYPES[kind],
            "access_control_list": [*direct, inherited],
        }


def _entry(field: str, principal: str, level: str, inherited_from: str = "") -> Document:
    permission: Document = {"permission_level": level, "inherited": bool(inherited_from)}
    if inherited_from:
        permission["inherited_from_object"] = [inherited_from]
    return {field: principal, "all_permissions": [permission]}


def _requested_grants(request: Request, kind: str) -> Grants:
    return [_parse_grant(entry, kind) for entry in request.parameters().get("access_control_list") or []]


def _parse_grant(entry: Any, kind: str) -> list[str]:
    level = entry.get("permission_level") if isinstance(entry, dict) else None
    if level not in LEVELS[kind]:
        raise invalid_parameter(f"{level!r} is not a permission level of {kind}: {', '.join(LEVELS[kind])}")
    fields = [field for field in PRINCIPAL_FIELDS if entry.get(field)]
    if len(fields) != 1:
        raise invalid_parameter(f"A grant needs exactly one of {', '.join(PRINCIPAL_FIELDS)}")
    return [fields[0], str(entry[fields[0]]), str(level)]
