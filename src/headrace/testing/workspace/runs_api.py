"""Runs: the endpoints of /api/2.2/jobs/run-now and /api/2.2/jobs/runs."""

from __future__ import annotations

from headrace.testing.workspace.dispatcher import Dispatcher
from headrace.testing.workspace.http_messages import (
    ApiError,
    Document,
    Request,
    does_not_exist,
    invalid_parameter,
    paginate,
)
from headrace.testing.workspace.job_rules import normalize
from headrace.testing.workspace.job_run import Run
from headrace.testing.workspace.store import Store
from headrace.testing.workspace.task_environment import TaskEnvironment

OVERRIDE_FIELDS = ("python_named_params", "python_params", "job_parameters")  # of run-now: parameters for this run only
LOG_LIMIT_BYTES = 5 * 2**20  # get-output returns only the end of a longer output


class Runs:
    """Starts, describes and cancels runs."""

    def __init__(self, store: Store, dispatcher: Dispatcher, environment: TaskEnvironment, url: str) -> None:
        self._store, self._dispatcher, self._environment, self._url = store, dispatcher, environment, url

    def run_now(self, request: Request) -> Document:
        """Start a run, or return the run that an earlier call with this idempotency token started."""
        job_id = request.integer("job_id")
        token = str(request.parameters().get("idempotency_token") or "")
        with self._store.lock:
            job = self._store.get("jobs", job_id)
            if job is None:
                raise does_not_exist(f"Job {job_id} does not exist.")
            existing = next((run for run in self._dispatcher.runs(job_id) if token and run.token == token), None)
            if existing is not None:
                return {"run_id": existing.run_id, "number_in_job": existing.number}
            if job["settings"].get("continuous", {}).get("pause_status") == "UNPAUSED":
                raise ApiError(400, "INVALID_STATE", f"Job {job_id} is continuous and not paused: it runs by itself.")
            overrides = {field: value for field in OVERRIDE_FIELDS if (value := request.parameters().get(field))}
            run = self._dispatcher.submit(job, user=request.user, idempotency_token=token, overrides=overrides)
        return {"run_id": run.run_id, "number_in_job": run.number}

    def submit(self, request: Request) -> Document:
        """Start a run without a job, or return the run that an earlier call with this idempotency token started."""
        token = str(request.parameters().get("idempotency_token") or "")
        if "job_clusters" in request.parameters():
            raise invalid_parameter("Shared job clusters are not supported in one-time runs.")
        settings = normalize({**request.parameters(), "name": request.parameters().get("run_name", "Untitled")})
        with self._store.lock:
            repeated = [run for run in self._dispatcher.runs() if run.token == token]
            if token and repeated:
                return {"run_id": repeated[0].run_id}
            job = {"job_id": self._store.next_id(), "settings": settings}  # not stored, so that no list contains it
            run = self._dispatcher.submit(job, user=request.user, idempotency_token=token)
        return {"run_id": run.run_id}

    def get(self, request: Request) -> Document:
        """Return a run with its tasks. If the id is that of a task's run, return only this task."""
        run, task_run_id = self._find(request)
        return run.api_document(self._url, with_tasks=True, task_run_id=task_run_id)

    def list(self, request: Request) -> Document:
        """Return the runs of a job, or of all jobs without `job_id`, newest first."""
        job_id = request.integer("job_id", 0)
        active_only, completed_only = request.flag("active_only"), request.flag("completed_only")
        if active_only and completed_only:
            raise invalid_parameter("Only one of active_only and completed_only can be true.")
        matches = self._dispatcher.runs(job_id or None)
        if active_only:
            matches = [run for run in matches if run.is_active]
        if completed_only:
            matches = [run for run in matches if not run.is_active]
        with_tasks = request.flag("expand_tasks")
        documents = [run.api_document(self._url, with_tasks=with_tasks) for run in matches]
        runs, next_token = paginate(documents, request, "run_id", default_limit=20, max_limit=25)
        return {
            **({"runs": runs} if runs else {}),
            "has_more": bool(next_token),
            **({"next_page_token": next_token} if next_token else {}),
        }

    def cancel(self, request: Request) -> Document:
        """Cancel a run. A run that has ended is not changed."""
        run, _ = self._find(request)
        self._dispatcher.cancel(run.run_id)
        return {}

    def cancel_all(self, request: Request) -> Document:
        """Cancel all runs of a job."""
        self._dispatcher.cancel_all(request.integer("job_id"))
        return {}

    def get_output(self, request: Request) -> Document:
        """Return the output of a task's run, or of a run with only one task, and its error if it failed."""
        run, task_run_id = self._find(request)
        if task_run_id is None and len(run.tasks) != 1:
            raise invalid_parameter(
                "Retrieving the output of runs with multiple tasks is not supported. "
                "Please retrieve the output of each individual task run instead."
            )
        task = next(task for task in run.tasks if task_run_id in (None, task.run_id))
        log = self._environment.log_file(task.run_id)
        output = log.read_bytes() if log.exists() else b""
        document: Document = {
            "metadata": run.api_document(self._url, with_tasks=True, task_run_id=task.run_id),
            "logs": output[-LOG_LIMIT_BYTES:].decode(errors="replace"),
            "logs_truncated": len(output) > LOG_LIMIT_BYTES,
        }
        if task.error:
            document |= {"error": task.error, "error_trace": task.trace}
        return document

    def _find(self, request: Request) -> tuple[Run, int | None]:
        """Return the run with the requested id, and None.

        If the id is that of a task's run, return the run with this task, and the id.
        """
        run_id = request.integer("run_id")
        for run in self._dispatcher.runs():
            if run.run_id == run_id:
                return run, None
            if any(task.run_id == run_id for task in run.tasks):
                return run, run_id
        raise does_not_exist(f"Run {run_id} does not exist.")
