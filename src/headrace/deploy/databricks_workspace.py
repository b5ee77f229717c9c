"""A Databricks workspace, called over its REST API: its jobs and their runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.deploy.databricks_files import WorkspaceFiles
from headrace.deploy.remote import RemoteJob, Run
from headrace.deploy.sdk_calls import UnknownOutcomeError, WorkspaceApi

RETRY_INTERVAL_S = 0.5  # between two attempts of a call that must not take effect twice
MAX_RUNS = 25  # per page; `list_runs` returns one page, or all pages of active runs
OWNER = "IS_OWNER"  # permission level of a job's owner
PRINCIPALS = ("user_name", "group_name", "service_principal_name")
JOBS_API = "/api/2.2/jobs"


class Workspace(WorkspaceFiles):
    """One workspace, called as one user."""

    def __init__(self, host: str, profile: str = "") -> None:
        super().__init__(WorkspaceApi(host, profile))
        self.name = self._api.host

    def user(self) -> str:
        """Return the name of the user who makes the calls."""
        return str(self._call("GET", "/api/2.0/preview/scim/v2/Me")["userName"])

    # ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────

    def get_job(self, job_id: int) -> RemoteJob | None:
        """Return a job, or None if it was deleted."""
        page = self._call("GET", f"{JOBS_API}/get", query={"job_id": job_id}, missing=None)
        if page is None:
            return None
        settings = dict(page["settings"])
        while page.get("next_page_token"):  # a page has at most 100 tasks
            query = {"job_id": job_id, "page_token": page["next_page_token"]}
            page = self._call("GET", f"{JOBS_API}/get", query=query)
            for key, value in page["settings"].items():
                if isinstance(value, list):
                    settings[key] = [*settings.get(key, []), *value]
        return RemoteJob(job_id, settings)

    def list_jobs(self, name: str | None = None, *, with_tasks: bool = False) -> list[RemoteJob]:
        """Return the jobs with this name, or all jobs; without `with_tasks`, their settings lack lists."""
        query = {"limit": 100, "name": name, "expand_tasks": "true" if with_tasks else None}
        used = {key: value for key, value in query.items() if value is not None}
        jobs = self._pages(f"{JOBS_API}/list", "jobs", used)
        return [RemoteJob(int(job["job_id"]), job["settings"]) for job in jobs]

    def create_job(self, body: dict[str, Any]) -> int:
        """Create a job and return its id.

        The platform would create a second job if the call were repeated after its response was lost. Therefore search
        for a job with the same tag before each retry.
        """
        deadline = time.monotonic() + self._api.retry_timeout
        while True:
            try:
                return int(self._call("POST", f"{JOBS_API}/create", body=body, once=True)["job_id"])
            except UnknownOutcomeError as error:
                tag = body["tags"]["headrace"]
                created = next((job for job in self.list_jobs(body["name"]) if job.tag == tag), None)
                if created is not None:
                    return created.id
                if time.monotonic() > deadline:
                    raise self._api.no_answer(*error.call, error) from error
                time.sleep(RETRY_INTERVAL_S)

    def reset_job(self, job_id: int, body: dict[str, Any]) -> None:
        """Replace all settings of a job."""
        self._call("POST", f"{JOBS_API}/reset", body={"job_id": job_id, "new_settings": body})

    def delete_job(self, job_id: int) -> None:
        """Delete a job if it exists."""
        self._call("POST", f"{JOBS_API}/delete", body={"job_id": job_id}, missing=None)

    def set_permissions(self, job_id: int, grants: Sequence[dict[str, str]]) -> None:
        """Replace the permissions on a job. Keep its owner unless `grants` has one: a job must have one owner."""
        path = f"/api/2.0/permissions/jobs/{job_id}"
        entries = self._call("GET", path).get("access_control_list", [])
        current = [grant for entry in entries for grant in _direct_grants(entry)]
        desired = [dict(grant) for grant in grants]
        if not any(grant["permission_level"] == OWNER for grant in desired):
            desired += [grant for grant in current if grant["permission_level"] == OWNER]
        is_changed = any(grant not in current for grant in desired) or any(grant not in desired for grant in current)
        if is_changed:
            self._call("PUT", path, body={"access_control_list": desired})

    # ── Runs ──────────────────────────────────────────────────────────────────────────────────────────

    def list_runs(self, job_id: int, *, active: bool = False) -> list[Run]:
        """Return the latest runs of a job, or all active runs if `active`; the newest run first."""
        query = {"job_id": job_id, "expand_tasks": "true", "limit": MAX_RUNS}
        if active:
            active_runs = self._pages(f"{JOBS_API}/runs/list", "runs", {**query, "active_only": "true"})
            return [_parse_run(run) for run in active_runs]
        return [_parse_run(run) for run in self._call("GET", f"{JOBS_API}/runs/list", query=query).get("runs", [])]

    def get_run(self, run_id: int) -> Run:
        """Return the current state of a run."""
        return _parse_run(self._call("GET", f"{JOBS_API}/runs/get", query={"run_id": run_id}))

    def start_run(self, job_id: int, token: str) -> int:
        """Start a run and return its id. A repeated call with the same token does not start a second run."""
        body = {"job_id": job_id, "idempotency_token": token}
        return int(self._call("POST", f"{JOBS_API}/run-now", body=body)["run_id"])

    def submit_run(self, body: dict[str, Any], token: str) -> int:
        """Start a run that belongs to no job, and return its id. A repeated call with the same token starts none."""
        return int(self._call("POST", f"{JOBS_API}/runs/submit", body={**body, "idempotency_token": token})["run_id"])

    def cancel_run(self, run_id: int) -> None:
        """Cancel a run if it is active; do not wait for its end."""
        self._call("POST", f"{JOBS_API}/runs/cancel", body={"run_id": run_id}, missing=None)

    def read_output(self, run: Run) -> str:
        """Return the output of the run's tasks."""
        parts = []
        for key, run_id in run.tasks.items():
            output = self._call("GET", f"{JOBS_API}/runs/get-output", query={"run_id": run_id}, missing={})
            texts = [output.get("logs", ""), output.get("error_trace", "") or output.get("error", "")]
            text = "\n".join(text.rstrip("\n") for text in texts if text)
            parts.append(f"── {key}\n{text}\n" if len(run.tasks) > 1 else f"{text}\n")
        return "".join(parts)

    # ── Pages and JSON ────────────────────────────────────────────────────────────────────────────────

    def _pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the items under `key` of all pages of a list."""
        page_query = query
        while True:
            page = self._call("GET", path, query=page_query)
            yield from page.get(key, [])
            if not page.get("next_page_token"):
                return
            page_query = {**query, "page_token": page["next_page_token"]}


def _direct_grants(entry: dict[str, Any]) -> list[dict[str, str]]:
    """Return the grants of an access control entry, without inherited ones, in the form that the API accepts."""
    principal = {key: entry[key] for key in PRINCIPALS if entry.get(key)}
    permissions = [permission for permission in entry.get("all_permissions", []) if not permission.get("inherited")]
    return [{**principal, "permission_level": permission["permission_level"]} for permission in permissions]


def _release_paths(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value that contain the path of a release."""
    if isinstance(value, str):
        if "/releases/" in value:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _release_paths(item)


def _parse_run(response: dict[str, Any]) -> Run:
    """Return the run that a response of the Jobs API describes."""
    state, tasks = response.get("state", {}), response.get("tasks", [])
    return Run(
        id=int(response["run_id"]),
        phase=str(state.get("life_cycle_state", "")),
        result=str(state.get("result_state", "")),
        message=str(state.get("state_message", "")),
        began=int(response.get("start_time", 0)),
        ended=int(response.get("end_time", 0)),
        url=str(response.get("run_page_url", "")),
        paths=tuple(_release_paths(tasks)),
        tasks={str(task["task_key"]): int(task["run_id"]) for task in tasks},
    )
