"""A Databricks workspace: files, jobs, runs."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from headrace.deploy.remote import Found, Run
from headrace.deploy.sdk_calls import Calls, ThereError, UnsureError
from headrace.errors import DeploymentError

PAUSE = 0.5  # seconds between two tries of what must not happen twice
MOST_RUNS = 25  # in an answer
LARGEST = 10 << 20  # bytes of a file that can be read back
OWNER = "IS_OWNER"
PRINCIPALS = ("user_name", "group_name", "service_principal_name")
JOBS, FILES, IMPORT = "/api/2.2/jobs", "/api/2.0/workspace", "/api/2.0/workspace-files/import-file"


class Workspace:
    """One workspace, as one user."""

    largest: int | None = LARGEST

    def __init__(self, host: str, profile: str = "") -> None:
        self._calls = Calls(host, profile)
        self._do, self.name = self._calls.do, self._calls.host

    def user(self) -> str:
        """The name of the user that the calls are made as."""
        return str(self._do("GET", "/api/2.0/preview/scim/v2/Me")["userName"])

    # ── Files ─────────────────────────────────────────────────────────────────────────────────────────

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None when it is not there."""
        found = self._do("GET", f"{FILES}/export", query={"path": path, "format": "AUTO"}, missing=None)
        return None if found is None else base64.b64decode(found["content"])

    def write(self, path: str, content: bytes) -> None:
        """Writes a whole file, over what is there."""
        self._do("POST", f"{IMPORT}{quote(path)}", query={"overwrite": "true"}, data=content)

    def write_new(self, path: str, content: bytes) -> bool:
        """Writes a file that is not there yet; after a lost answer, what is there tells whether it was this one."""
        try:
            self._do("POST", f"{IMPORT}{quote(path)}", query={"overwrite": "false"}, data=content, once=True)
        except (ThereError, UnsureError) as error:
            there = self.read(path)
            if there is None:
                if isinstance(error, UnsureError):
                    raise self._calls.silent(*error.call, error) from error
                return False  # gone since
            return there == content
        return True

    def make_directory(self, path: str) -> None:
        """Makes the directory and those above it, where they are not there."""
        self._do("POST", f"{FILES}/mkdirs", body={"path": path})

    def names(self, path: str) -> list[str]:
        """The names in a directory; none when it is not there."""
        found = self._do("GET", f"{FILES}/list", query={"path": path}, missing={})
        return [one["path"].rpartition("/")[2] for one in found.get("objects", [])]

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all in it; it may be gone already."""
        self._do("POST", f"{FILES}/delete", body={"path": path, "recursive": True}, missing=None)

    def let_read(self, directory: str, who: dict[str, str]) -> None:
        """Lets somebody read a directory."""
        number = self._do("GET", f"{FILES}/get-status", query={"path": directory})["object_id"]
        grant = {"access_control_list": [{**who, "permission_level": "CAN_READ"}]}
        self._do("PATCH", f"/api/2.0/permissions/directories/{number}", body=grant)

    def ask(self, path: str, content: bytes) -> bool:
        """Leaves a request in a volume; elsewhere, and where we may not write, nothing is left."""
        if not path.startswith("/Volumes/"):
            return False
        try:
            self._do("PUT", f"/api/2.0/fs/files{quote(path)}", query={"overwrite": "true"}, data=content)
        except DeploymentError:
            return False
        return True

    def withdraw(self, path: str) -> None:
        """Delete a request in a volume; it may be gone already, or could never be written."""
        if path.startswith("/Volumes/"):
            with suppress(DeploymentError):
                self._do("DELETE", f"/api/2.0/fs/files{quote(path)}", missing=None)

    # ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────

    def job(self, number: int) -> Found | None:
        """A job; None when it is gone."""
        found = self._do("GET", f"{JOBS}/get", query={"job_id": number}, missing=None)
        if found is None:
            return None
        settings = dict(found["settings"])
        while found.get("next_page_token"):  # more than a hundred tasks
            query = {"job_id": number, "page_token": found["next_page_token"]}
            found = self._do("GET", f"{JOBS}/get", query=query)
            for key, value in found["settings"].items():
                if isinstance(value, list):
                    settings[key] = [*settings.get(key, []), *value]
        return Found(number, settings)

    def jobs_named(self, name: str) -> list[Found]:
        """The jobs of that name."""
        listed = self._pages(f"{JOBS}/list", "jobs", {"name": name, "limit": 100})
        return [Found(int(one["job_id"]), one["settings"]) for one in listed]

    def create_job(self, body: dict[str, Any]) -> int:
        """Makes a job. The platform cannot tell a repeated call from a second job: before each try we look by tag."""
        until = time.monotonic() + self._calls.patience
        while True:
            try:
                return int(self._do("POST", f"{JOBS}/create", body=body, once=True)["job_id"])
            except UnsureError as error:
                wanted = body["tags"]["headrace"]
                made = next((one for one in self.jobs_named(body["name"]) if one.tag == wanted), None)
                if made is not None:
                    return made.id
                if time.monotonic() > until:
                    raise self._calls.silent(*error.call, error) from error
                time.sleep(PAUSE)

    def reset_job(self, number: int, body: dict[str, Any]) -> None:
        """Replaces all that a job says."""
        self._do("POST", f"{JOBS}/reset", body={"job_id": number, "new_settings": body})

    def delete_job(self, number: int) -> None:
        """Deletes a job; it may be gone already."""
        self._do("POST", f"{JOBS}/delete", body={"job_id": number}, missing=None)

    def grant(self, number: int, grants: Sequence[dict[str, str]]) -> None:
        """Gives these permissions on a job and no others; the owner keeps it, whom the platform wants named."""
        path = f"/api/2.0/permissions/jobs/{number}"
        there = [one for entry in self._do("GET", path).get("access_control_list", []) for one in _direct(entry)]
        wanted = [dict(one) for one in grants]
        if not any(one["permission_level"] == OWNER for one in wanted):
            wanted += [one for one in there if one["permission_level"] == OWNER]
        if any(one not in there for one in wanted) or any(one not in wanted for one in there):
            self._do("PUT", path, body={"access_control_list": wanted})

    # ── Runs ──────────────────────────────────────────────────────────────────────────────────────────

    def runs(self, job: int, *, active: bool = False) -> list[Run]:
        """The latest runs of a job, or those that have not ended; the newest first."""
        query = {"job_id": job, "expand_tasks": "true", "limit": MOST_RUNS}
        if active:
            return [_run(one) for one in self._pages(f"{JOBS}/runs/list", "runs", {**query, "active_only": "true"})]
        return [_run(one) for one in self._do("GET", f"{JOBS}/runs/list", query=query).get("runs", [])]

    def run(self, number: int) -> Run:
        """One run."""
        return _run(self._do("GET", f"{JOBS}/runs/get", query={"run_id": number}))

    def start(self, job: int, token: str) -> int:
        """Starts a run; the same token never starts two."""
        return int(self._do("POST", f"{JOBS}/run-now", body={"job_id": job, "idempotency_token": token})["run_id"])

    def cancel(self, run: int) -> None:
        """Asks a run to end; it may have ended."""
        self._do("POST", f"{JOBS}/runs/cancel", body={"run_id": run}, missing=None)

    def output(self, run: Run) -> str:
        """What the run's tasks have said."""
        parts = []
        for key, number in run.tasks.items():
            told = self._do("GET", f"{JOBS}/runs/get-output", query={"run_id": number}, missing={})
            texts = [told.get("logs", ""), told.get("error_trace", "") or told.get("error", "")]
            said = "\n".join(text.rstrip("\n") for text in texts if text)
            parts.append(f"── {key}\n{said}\n" if len(run.tasks) > 1 else f"{said}\n")
        return "".join(parts)

    # ── One call ──────────────────────────────────────────────────────────────────────────────────────

    def _pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token: dict[str, Any] = {}
        while True:
            page = self._do("GET", path, query={**query, **token})
            yield from page.get(key, [])
            if not page.get("next_page_token"):
                return
            token = {"page_token": page["next_page_token"]}


def _direct(entry: dict[str, Any]) -> list[dict[str, str]]:
    """The grants of one entry, in the form in which they are given; what comes from above is none."""
    principal = {key: entry[key] for key in PRINCIPALS if entry.get(key)}
    levels = [one["permission_level"] for one in entry.get("all_permissions", []) if not one.get("inherited")]
    return [{**principal, "permission_level": level} for level in levels]


def _paths(told: Any) -> Iterator[str]:
    """All texts that name a release, wherever they stand."""
    if isinstance(told, str):
        yield from [told] if "/releases/" in told else []
    elif isinstance(told, dict | list):
        for inside in told.values() if isinstance(told, dict) else told:
            yield from _paths(inside)


def _run(told: dict[str, Any]) -> Run:
    state, tasks = told.get("state", {}), told.get("tasks", [])
    return Run(
        id=int(told["run_id"]),
        phase=str(state.get("life_cycle_state", "")),
        result=str(state.get("result_state", "")),
        message=str(state.get("state_message", "")),
        began=int(told.get("start_time", 0)),
        ended=int(told.get("end_time", 0)),
        url=str(told.get("run_page_url", "")),
        paths=tuple(_paths(tasks)),
        tasks={str(task["task_key"]): int(task["run_id"]) for task in tasks},
    )
