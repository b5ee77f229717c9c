"""Runs as clients ask for them: what /api/2.2/jobs/run-now and /api/2.2/jobs/runs do."""

from __future__ import annotations

from headrace.testing.workspace.dispatcher import Dispatch
from headrace.testing.workspace.http_messages import ApiError, Document, Request, invalid, missing, page
from headrace.testing.workspace.job_run import Run
from headrace.testing.workspace.store import Store
from headrace.testing.workspace.task_environment import Places

OVERRIDES = ("python_named_params", "python_params", "job_parameters")
LOG_LIMIT = 5 * 2**20


class Runs:
    """Starts, tells and ends runs."""

    def __init__(self, store: Store, dispatch: Dispatch, places: Places, url: str) -> None:
        self._store, self._dispatch, self._places, self._url = store, dispatch, places, url

    def run_now(self, request: Request) -> Document:
        """A new run, or the one that this idempotency token has started before."""
        number = request.number("job_id")
        token = str(request.given().get("idempotency_token") or "")
        with self._store.lock:
            job = self._store.get("jobs", number)
            if job is None:
                raise missing(f"Job {number} does not exist.")
            before = next((run for run in self._dispatch.of(number) if token and run.token == token), None)
            if before is not None:
                return {"run_id": before.run_id, "number_in_job": before.number}
            if job["settings"].get("continuous", {}).get("pause_status") == "UNPAUSED":
                raise ApiError(400, "INVALID_STATE", f"Job {number} is continuous and not paused: it runs by itself.")
            overrides = {name: value for name in OVERRIDES if (value := request.given().get(name))}
            run = self._dispatch.submit(job, user=request.user, token=token, overrides=overrides)
        return {"run_id": run.run_id, "number_in_job": run.number}

    def get(self, request: Request) -> Document:
        """A run with its tasks; for a task's run, with that task alone."""
        run, task = self._found(request)
        return run.view(self._url, tasks=True, only=task)

    def list(self, request: Request) -> Document:
        """Runs, newest first."""
        job = request.number("job_id", 0)
        active, completed = request.flag("active_only"), request.flag("completed_only")
        if active and completed:
            raise invalid("Only one of active_only and completed_only can be true.")
        found = [
            run.view(self._url, tasks=request.flag("expand_tasks"))
            for run in self._dispatch.of(job or None)
            if not (active and not run.active) and not (completed and run.active)
        ]
        runs, more = page(found, request, "run_id", limit=20, most=25)
        return {
            **({"runs": runs} if runs else {}),
            "has_more": bool(more),
            **({"next_page_token": more} if more else {}),
        }

    def cancel(self, request: Request) -> Document:
        """Asks a run to end; nothing when it has ended."""
        run, _ = self._found(request)
        self._dispatch.cancel(run.run_id)
        return {}

    def cancel_all(self, request: Request) -> Document:
        """Asks all runs of a job to end."""
        self._dispatch.end_all(request.number("job_id"))
        return {}

    def output(self, request: Request) -> Document:
        """What a task has printed, and how it failed."""
        run, number = self._found(request)
        if number is None and len(run.tasks) != 1:
            raise invalid(
                "Retrieving the output of runs with multiple tasks is not supported. "
                "Please retrieve the output of each individual task run instead."
            )
        task = next(each for each in run.tasks if number in (None, each.run_id))
        log = self._places.log(task.run_id)
        printed = log.read_bytes() if log.exists() else b""
        told: Document = {
            "metadata": run.view(self._url, tasks=True, only=task.run_id),
            "logs": printed[-LOG_LIMIT:].decode(errors="replace"),
            "logs_truncated": len(printed) > LOG_LIMIT,
        }
        if task.error:
            told |= {"error": task.error, "error_trace": task.trace}
        return told

    def _found(self, request: Request) -> tuple[Run, int | None]:
        number = request.number("run_id")
        for run in self._dispatch.of():
            if run.run_id == number:
                return run, None
            if any(task.run_id == number for task in run.tasks):
                return run, number
        raise missing(f"Run {number} does not exist.")
