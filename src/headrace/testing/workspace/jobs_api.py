"""Job definitions: the endpoints of /api/2.2/jobs."""

from __future__ import annotations

import time

from headrace.testing.workspace.dispatcher import Dispatcher
from headrace.testing.workspace.http_messages import Document, Request, does_not_exist, invalid_parameter, paginate
from headrace.testing.workspace.job_rules import normalize
from headrace.testing.workspace.store import Store

# `list` returns these fields only with `expand_tasks`. `get` returns them on the first page, and `tasks` on all pages.
ARRAY_FIELDS = ("tasks", "job_clusters", "environments", "parameters")
TASKS_PER_PAGE = 100


class Jobs:
    """The definitions of jobs; their runs belong to the dispatcher."""

    def __init__(self, store: Store, dispatcher: Dispatcher) -> None:
        self._store, self._dispatcher = store, dispatcher

    def create(self, request: Request) -> Document:
        """Create a job. A repeated call creates another job, because this API call has no idempotency token."""
        settings = normalize(request.parameters())
        job_id = self._store.next_id()
        job = {
            "job_id": job_id,
            "creator_user_name": request.user,
            "created_time": int(time.time() * 1000),
            "settings": settings,
        }
        self._store.put("jobs", job_id, job)
        self._dispatcher.start_run_if_continuous(job_id)
        return {"job_id": job_id}

    def reset(self, request: Request) -> Document:
        """Replace the definition of a job; its active runs keep the definition that they started with."""
        new_settings = request.parameters().get("new_settings")
        if not isinstance(new_settings, dict):
            raise invalid_parameter("Missing required field: new_settings")
        with self._store.lock:
            job = self._job(request)
            settings = normalize(new_settings)
            if "run_as" in job["settings"]:  # the platform keeps run_as if the new definition has none
                settings.setdefault("run_as", job["settings"]["run_as"])
            self._store.put("jobs", job["job_id"], {**job, "settings": settings})
            self._dispatcher.start_run_if_continuous(job["job_id"])
        return {}

    def delete(self, request: Request) -> Document:
        """Delete a job and cancel its runs."""
        with self._store.lock:
            job_id = self._job(request)["job_id"]
            self._store.delete("jobs", job_id)
            self._store.delete("grants-jobs", job_id)
            self._dispatcher.cancel_all(job_id)
        return {}

    def get(self, request: Request) -> Document:
        """Return a job with at most 100 of its tasks, and the token of the page with the next tasks."""
        job = self._job(request)
        start = request.integer("page_token", 0)
        settings = dict(job["settings"])
        tasks = settings.get("tasks", [])
        has_more = len(tasks) > start + TASKS_PER_PAGE
        if start:  # array fields other than tasks are only on the first page
            settings |= {field: [] for field in ARRAY_FIELDS}
        settings["tasks"] = tasks[start : start + TASKS_PER_PAGE]
        return {
            **job,
            "settings": settings,
            "run_as_user_name": _run_as(job),
            **({"next_page_token": str(start + TASKS_PER_PAGE), "has_more": True} if has_more else {}),
        }

    def list(self, request: Request) -> Document:
        """Return jobs, newest first. The parameter `name` selects jobs by name, without regard to case.

        Tasks and other arrays are left out unless `expand_tasks` is set.
        """
        name = request.parameters().get("name")
        matches = [
            job
            for job in self._store.all("jobs")
            if name is None or job["settings"].get("name", "").lower() == str(name).lower()
        ]
        page, next_token = paginate(matches, request, "job_id", default_limit=20, max_limit=100)
        omitted = () if request.flag("expand_tasks") else ARRAY_FIELDS
        jobs = [
            {**job, "settings": {field: value for field, value in job["settings"].items() if field not in omitted}}
            for job in page
        ]
        return {
            **({"jobs": jobs} if jobs else {}),
            "has_more": bool(next_token),
            **({"next_page_token": next_token} if next_token else {}),
        }

    def _job(self, request: Request) -> Document:
        job_id = request.integer("job_id")
        job = self._store.get("jobs", job_id)
        if job is None:
            raise does_not_exist(f"Job {job_id} does not exist.")
        return job


def _run_as(job: Document) -> str:
    identity = job["settings"].get("run_as") or {}
    return str(identity.get("service_principal_name") or identity.get("user_name") or job["creator_user_name"])
