"""Who may do what with a job or a directory: kept and told, but not enforced."""

from __future__ import annotations

from typing import Any

from headrace.testing.workspace.files_api import WorkspaceFiles
from headrace.testing.workspace.http_messages import Document, Request, invalid, missing
from headrace.testing.workspace.store import Store

LEVELS = {
    "jobs": ("CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", "IS_OWNER"),
    "directories": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
}
TYPES = {"jobs": "job", "directories": "directory"}
PRINCIPALS = ("user_name", "group_name", "service_principal_name")
OWNER = "IS_OWNER"
Grants = list[list[str]]  # of principal kind, principal, level


class Permissions:
    """The grants on jobs and directories; a job always has one owner."""

    def __init__(self, store: Store, files: WorkspaceFiles) -> None:
        self._store, self._files = store, files

    def get(self, request: Request) -> Document:
        """All grants, with those that come from above."""
        kind, number = self._object(request)
        return self._told(kind, number, self._grants(kind, number))

    def replace(self, request: Request) -> Document:
        """These grants instead of those before; of a job they name the owner."""
        kind, number = self._object(request)
        return self._keep(kind, number, _asked(request, kind))

    def add(self, request: Request) -> Document:
        """These grants beside those before, instead of those of the same principals."""
        kind, number = self._object(request)
        asked = _asked(request, kind)
        named = [grant[:2] for grant in asked]
        kept = [grant for grant in self._grants(kind, number) if grant[:2] not in named]
        if any(grant[2] == OWNER for grant in asked):
            kept = [grant for grant in kept if grant[2] != OWNER]
        return self._keep(kind, number, kept + asked)

    def _keep(self, kind: str, number: int, grants: Grants) -> Document:
        owners = [grant for grant in grants if grant[2] == OWNER]
        if kind == "jobs" and len(owners) != 1:
            raise invalid("The job must have exactly one owner.")
        self._store.put(f"grants-{kind}", number, {"grants": grants})
        return self._told(kind, number, grants)

    def _grants(self, kind: str, number: int) -> Grants:
        kept = self._store.get(f"grants-{kind}", number)
        if kept is not None:
            return list(kept["grants"])
        job = self._store.get("jobs", number) if kind == "jobs" else None
        return [["user_name", job["creator_user_name"], OWNER]] if job else []

    def _object(self, request: Request) -> tuple[str, int]:
        kind, text = request.rest
        number = int(text) if text.isdigit() else 0
        there = self._store.get("jobs", number) if kind == "jobs" else self._files.directory_of(number)
        if there is None:
            raise missing(f"{TYPES[kind].capitalize()} {text} does not exist.")
        return kind, number

    def _told(self, kind: str, number: int, grants: Grants) -> Document:
        direct = [_entry(principal, name, level) for principal, name, level in grants]
        above = _entry("group_name", "admins", "CAN_MANAGE", inherited_from=f"/{kind}/")
        return {
            "object_id": f"/{kind}/{number}",
            "object_type": TYPES[kind],
            "access_control_list": [*direct, above],
        }


def _entry(principal: str, name: str, level: str, inherited_from: str = "") -> Document:
    permission: Document = {"permission_level": level, "inherited": bool(inherited_from)}
    if inherited_from:
        permission["inherited_from_object"] = [inherited_from]
    return {principal: name, "all_permissions": [permission]}


def _asked(request: Request, kind: str) -> Grants:
    return [_grant(entry, kind) for entry in request.given().get("access_control_list") or []]


def _grant(entry: Any, kind: str) -> list[str]:
    level = entry.get("permission_level") if isinstance(entry, dict) else None
    if level not in LEVELS[kind]:
        raise invalid(f"{level!r} is not a permission level of {kind}: {', '.join(LEVELS[kind])}")
    named = [principal for principal in PRINCIPALS if entry.get(principal)]
    if len(named) != 1:
        raise invalid(f"A grant needs exactly one of {', '.join(PRINCIPALS)}")
    return [named[0], str(entry[named[0]]), str(level)]
