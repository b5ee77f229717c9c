"""Scheduling of runs: concurrency limits, queues, continuous jobs, and recovery after a restart of the workspace."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.job_run import Run, TaskRun
from headrace.testing.workspace.store import Store

WORKSPACE_STOPPED = "The workspace was stopped while the run was active."
MAX_RESTART_DELAY_S = 60.0  # between two runs of a continuous job that fails
# Executes the tasks of a run. The arguments are the run, an event that cancels the run, and a function that saves it.
ExecuteTasks = Callable[[Run, threading.Event, Callable[[], None]], None]


class ActiveRun(NamedTuple):
    """The thread of an active run, and the event that stops the run early."""

    stop_event: threading.Event
    thread: threading.Thread


class Dispatcher:
    """Starts each run in its own thread, which calls `execute_tasks`.

    A continuous job restarts after `restart_delay_s`, which doubles with each further failure in a row.
    """

    def __init__(self, store: Store, execute_tasks: ExecuteTasks, *, restart_delay_s: float) -> None:
        self._store, self._execute_tasks, self._restart_delay_s = store, execute_tasks, restart_delay_s
        self._runs = {record["run_id"]: Run.from_record(record) for record in store.all("runs")}
        self._active: dict[int, ActiveRun] = {}
        self._timers: dict[int, threading.Timer] = {}
        self._failures: dict[int, int] = {}  # job id -> consecutive failures
        self._is_stopped = False

    def recover(self) -> None:
        """After a restart of the workspace, end the runs that were active and start continuous jobs again."""
        for run in self.runs():
            if run.is_active:
                _end_with_internal_error(run, WORKSPACE_STOPPED)
                self._save(run)
        for job in self._store.all("jobs"):
            self.start_run_if_continuous(job["job_id"])

    def runs(self, job_id: int | None = None) -> list[Run]:
        """Return all runs, or those of one job, in the order of creation."""
        with self._store.lock:
            return [run for run in self._runs.values() if job_id in (None, run.job_id)]

    def submit(
        self,
        job: Document,
        *,
        user: str,
        trigger: str = "ONE_TIME",
        idempotency_token: str = "",
        overrides: Document | None = None,
    ) -> Run:
        """Create a run and start it.

        If the job already has its maximum number of concurrent runs, queue the run if the job has a queue, or else
        skip the run.
        """
        settings = job["settings"]
        with self._store.lock:
            earlier_runs = self.runs(job["job_id"])
            run = Run(
                self._store.next_id(),
                job_id=job["job_id"],
                number=len(earlier_runs) + 1,
                user=user,
                trigger=trigger,
                token=idempotency_token,
                settings=settings,
                overrides=overrides or {},
            )
            run.tasks = [TaskRun(self._store.next_id(), key=task["task_key"]) for task in settings.get("tasks", [])]
            self._runs[run.run_id] = run
            if sum(earlier.is_active for earlier in earlier_runs) < settings["max_concurrent_runs"]:
                self._start(run)
            elif (settings.get("queue") or {}).get("enabled"):
                run.phase = "QUEUED"
            else:
                message = "The job has reached its maximum number of concurrent runs."
                run.finish("MAXIMUM_CONCURRENT_RUNS_REACHED", message, phase="SKIPPED")
            self._save(run)
        return run

    def cancel(self, run_id: int) -> None:
        """End a queued run, or ask a started run to stop. A run that has ended is not changed."""
        with self._store.lock:
            run = self._runs[run_id]
            if run.phase == "QUEUED":
                for run_or_task in (*run.tasks, run):
                    run_or_task.finish("CANCELED", "Run cancelled.")
            elif run.is_active:
                run.phase = "TERMINATING"
                self._active[run_id].stop_event.set()
            self._save(run)

    def cancel_all(self, job_id: int) -> None:
        """Cancel all runs of a job."""
        with self._store.lock:
            # Cancel queued runs first (False sorts before True), so that none of them starts when an active run ends.
            for run in sorted(self.runs(job_id), key=lambda run: run.phase != "QUEUED"):
                if run.is_active:
                    self.cancel(run.run_id)

    def start_run_if_continuous(self, job_id: int) -> None:
        """Start a run of a continuous job, unless the job is paused or has an active run. Ignore other jobs."""
        with self._store.lock:
            timer = self._timers.pop(job_id, None)  # a call that `_start_next` has scheduled; this call replaces it
            if timer is not None:
                timer.cancel()
            job = self._store.get("jobs", job_id)
            continuous = job["settings"].get("continuous") if job else None
            if self._is_stopped or not job or not continuous or continuous["pause_status"] == "PAUSED":
                return
            if not any(run.is_active for run in self.runs(job_id)):
                self.submit(job, user=job["creator_user_name"], trigger="CONTINUOUS")

    def stop(self) -> None:
        """Stop all runs and wait until they have ended."""
        with self._store.lock:
            self._is_stopped = True
            for timer in self._timers.values():
                timer.cancel()
            active = list(self._active.values())
        for active_run in active:
            active_run.stop_event.set()
        for active_run in active:
            active_run.thread.join()

    def _start(self, run: Run) -> None:
        stop_event = threading.Event()
        thread = threading.Thread(target=self._execute, args=(run, stop_event), name=f"run {run.run_id}", daemon=True)
        self._active[run.run_id] = ActiveRun(stop_event, thread)
        thread.start()

    def _execute(self, run: Run, stop_event: threading.Event) -> None:
        def save() -> None:
            with self._store.lock:
                self._save(run)

        with self._store.lock:
            if not stop_event.is_set():
                run.phase = "RUNNING"
            save()
        try:
            self._execute_tasks(run, stop_event, save)
        except Exception:  # a bug in the workspace ends the run; otherwise clients would wait for the run forever
            _end_with_internal_error(run, traceback.format_exc())
        with self._store.lock:
            # Stopped by `Dispatcher.stop`; `Dispatcher.cancel` would have set TERMINATING.
            if stop_event.is_set() and run.phase == "RUNNING":
                _end_with_internal_error(run, WORKSPACE_STOPPED)
            elif run.is_active:
                _finish(run)
            self._save(run)
            del self._active[run.run_id]
            self._start_next(run)

    def _start_next(self, ended: Run) -> None:
        """Start the next queued run of the job, or schedule the next run of a continuous job."""
        if self._is_stopped:
            return
        queued = [run for run in self.runs(ended.job_id) if run.phase == "QUEUED"]
        if queued:
            queued[0].phase = "PENDING"
            self._start(queued[0])
            self._save(queued[0])
            return
        job = self._store.get("jobs", ended.job_id)
        if job is not None and "continuous" in job["settings"]:
            failures = self._failures.get(ended.job_id, 0) + 1 if ended.result == "FAILED" else 0
            self._failures[ended.job_id] = failures
            delay_s = min(self._restart_delay_s * 2 ** max(failures - 1, 0), MAX_RESTART_DELAY_S)
            timer = threading.Timer(delay_s, self.start_run_if_continuous, (ended.job_id,))
            timer.daemon = True
            self._timers[ended.job_id] = timer
            timer.start()

    def _save(self, run: Run) -> None:
        self._store.put("runs", run.run_id, run.to_record())


def _end_with_internal_error(run: Run, message: str) -> None:
    """End a run and its active tasks."""
    active_tasks = [task for task in run.tasks if task.is_active]
    for run_or_task in (*active_tasks, run):
        run_or_task.finish(result="", message=message, phase="INTERNAL_ERROR")


def _finish(run: Run) -> None:
    """End a run with the result that follows from the results of its tasks."""
    results = {task.result for task in run.tasks}
    failed = next((task for task in run.tasks if task.result == "FAILED"), None)
    if "CANCELED" in results or run.phase == "TERMINATING":
        run.finish("CANCELED", "Run cancelled.")
    elif failed is not None:
        run.finish("FAILED", f"Task {failed.key} failed with message: {failed.message}.")
    else:
        run.finish("SUCCESS")
