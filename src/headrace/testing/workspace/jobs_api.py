"""Jobs: what /api/2.2/jobs does with their definitions."""

from __future__ import annotations

import time

from headrace.testing.workspace import job_rules
from headrace.testing.workspace.dispatcher import Dispatch
from headrace.testing.workspace.http_messages import Document, Request, invalid, missing, page
from headrace.testing.workspace.store import Store

# What the platform keeps of a definition; anything else it drops without a word.
FIELDS = """
budget_policy_id continuous deployment description edit_mode email_notifications environments format git_source health
job_clusters max_concurrent_runs name notification_settings parameters performance_target queue run_as schedule tags
tasks timeout_seconds trigger usage_policy_id webhook_notifications
"""
KEPT = frozenset(FIELDS.split())
LISTS = ("tasks", "job_clusters", "environments", "parameters")
TASKS_IN_A_PAGE = 100


class Jobs:
    """The definitions of jobs; their runs are the dispatch's."""

    def __init__(self, store: Store, dispatch: Dispatch) -> None:
        self._store, self._dispatch = store, dispatch

    def create(self, request: Request) -> Document:
        """A new job at each call: nothing tells a repeated call from a second job."""
        settings = _settled(request.given())
        number = self._store.next_id()
        job = {
            "job_id": number,
            "creator_user_name": request.user,
            "created_time": int(time.time() * 1000),
            "settings": settings,
        }
        self._store.put("jobs", number, job)
        self._dispatch.keep(number)
        return {"job_id": number}

    def reset(self, request: Request) -> Document:
        """Replaces the definition; runs that go on keep the one they were started with."""
        new = request.given().get("new_settings")
        if not isinstance(new, dict):
            raise invalid("Missing required field: new_settings")
        with self._store.lock:
            job = self._job(request)
            settings = _settled(new)
            if "run_as" in job["settings"]:  # leaving it out does not take it away
                settings.setdefault("run_as", job["settings"]["run_as"])
            self._store.put("jobs", job["job_id"], {**job, "settings": settings})
            self._dispatch.keep(job["job_id"])
        return {}

    def delete(self, request: Request) -> Document:
        """Deletes the job and ends its runs."""
        with self._store.lock:
            number = self._job(request)["job_id"]
            self._store.drop("jobs", number)
            self._store.drop("grants-jobs", number)
            self._dispatch.end_all(number)
        return {}

    def get(self, request: Request) -> Document:
        """The job, with at most a hundred tasks in an answer."""
        job = self._job(request)
        start = request.number("page_token", 0)
        settings = dict(job["settings"])
        tasks = settings.get("tasks", [])
        more = len(tasks) > start + TASKS_IN_A_PAGE
        if start:
            settings |= {name: [] for name in LISTS}
        settings["tasks"] = tasks[start : start + TASKS_IN_A_PAGE]
        return {
            **job,
            "settings": settings,
            "run_as_user_name": _run_as(job),
            **({"next_page_token": str(start + TASKS_IN_A_PAGE), "has_more": True} if more else {}),
        }

    def list(self, request: Request) -> Document:
        """Jobs, newest first; those of a name when one is given, whatever its case."""
        name = request.given().get("name")
        found = [
            job
            for job in self._store.all("jobs")
            if name is None or job["settings"].get("name", "").lower() == str(name).lower()
        ]
        jobs, more = page(found, request, "job_id", limit=20, most=100)
        hidden = () if request.flag("expand_tasks") else LISTS
        told = [
            {**job, "settings": {key: value for key, value in job["settings"].items() if key not in hidden}}
            for job in jobs
        ]
        return {
            **({"jobs": told} if told else {}),
            "has_more": bool(more),
            **({"next_page_token": more} if more else {}),
        }

    def _job(self, request: Request) -> Document:
        number = request.number("job_id")
        job = self._store.get("jobs", number)
        if job is None:
            raise missing(f"Job {number} does not exist.")
        return job


def _settled(given: Document) -> Document:
    """A definition as the platform tells it back: checked, and with what it fills in."""
    settings = {key: value for key, value in given.items() if key in KEPT and value is not None}
    job_rules.check(settings)
    settings.setdefault("name", "Untitled")
    settings |= {"format": "MULTI_TASK"}
    for key, value in (("email_notifications", {}), ("webhook_notifications", {}), ("timeout_seconds", 0)):
        settings.setdefault(key, value)
    settings["max_concurrent_runs"] = int(settings.get("max_concurrent_runs", 1))
    for key in ("continuous", "schedule"):
        if key in settings:
            settings[key] = {"pause_status": "UNPAUSED", **settings[key]}
    if "tasks" in settings:
        settings["tasks"] = [_settled_task(task) for task in settings["tasks"]]
    return settings


def _settled_task(task: Document) -> Document:
    filled = {"run_if": "ALL_SUCCESS", "timeout_seconds": 0, "email_notifications": {}, **task}
    if "depends_on" in filled:
        filled["depends_on"] = sorted(filled["depends_on"], key=lambda each: str(each["task_key"]))
    return filled


def _run_as(job: Document) -> str:
    chosen = job["settings"].get("run_as") or {}
    return str(chosen.get("service_principal_name") or chosen.get("user_name") or job["creator_user_name"])
