"""When runs begin and end: limits, queues, continuous jobs that are started again, and what a restart finds."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.job_run import Run, TaskRun
from headrace.testing.workspace.store import Store

STOPPED = "The workspace was stopped while the run was active."
LONGEST = 60.0  # seconds between two starts of a continuous job that fails
Work = Callable[[Run, threading.Event, Callable[[], None]], None]


class Dispatch:
    """Carries out runs, each in a thread of its own, by `work`, which ends early when its event is set."""

    def __init__(self, store: Store, work: Work, *, restart_delay: float) -> None:
        self._store, self._work, self._delay = store, work, restart_delay
        self._runs = {document["run_id"]: Run.read(document) for document in store.all("runs")}
        self._going: dict[int, tuple[threading.Event, threading.Thread]] = {}
        self._timers: dict[int, threading.Timer] = {}
        self._failures: dict[int, int] = {}
        self._closed = False

    def recover(self) -> None:
        """After a restart: what ran then runs no longer; continuous jobs start anew."""
        for run in self.of():
            if run.active:
                _interrupt(run, STOPPED)
                self._keep_record(run)
        for job in self._store.all("jobs"):
            self.keep(job["job_id"])

    def of(self, job_id: int | None = None) -> list[Run]:
        """All runs, or those of a job, in the order of their starts."""
        with self._store.lock:
            return [run for run in self._runs.values() if job_id in (None, run.job_id)]

    def submit(
        self,
        job: Document,
        *,
        user: str,
        trigger: str = "ONE_TIME",
        token: str = "",
        overrides: Document | None = None,
    ) -> Run:
        """A new run: begun, queued, or skipped when the job has as many as it may."""
        settings = job["settings"]
        with self._store.lock:
            before = self.of(job["job_id"])
            run = Run(
                self._store.next_id(),
                job_id=job["job_id"],
                number=len(before) + 1,
                user=user,
                trigger=trigger,
                token=token,
                settings=settings,
                overrides=overrides or {},
            )
            run.tasks = [TaskRun(self._store.next_id(), key=task["task_key"]) for task in settings.get("tasks", [])]
            self._runs[run.run_id] = run
            if sum(other.active for other in before) < settings["max_concurrent_runs"]:
                self._begin(run)
            elif (settings.get("queue") or {}).get("enabled"):
                run.phase = "QUEUED"
            else:
                run.finish("MAXIMUM_CONCURRENT_RUNS_REACHED", "The job has as many runs as it may.", "SKIPPED")
            self._keep_record(run)
        return run

    def cancel(self, run_id: int) -> None:
        """Asks a run to end."""
        with self._store.lock:
            run = self._runs[run_id]
            if run.phase == "QUEUED":
                for each in (*run.tasks, run):
                    each.finish("CANCELED", "Run cancelled.")
            elif run.active:
                run.phase = "TERMINATING"
                self._going[run_id][0].set()
            self._keep_record(run)

    def end_all(self, job_id: int) -> None:
        """Asks all runs of a job to end."""
        with self._store.lock:
            for run in sorted(self.of(job_id), key=lambda run: run.phase != "QUEUED"):  # none steps in for another
                if run.active:
                    self.cancel(run.run_id)

    def keep(self, job_id: int) -> None:
        """Sees to it that a continuous job has its one run, unless it is paused."""
        with self._store.lock:
            timer = self._timers.pop(job_id, None)
            if timer is not None:
                timer.cancel()
            job = self._store.get("jobs", job_id)
            continuous = job["settings"].get("continuous") if job else None
            if self._closed or not job or not continuous or continuous["pause_status"] == "PAUSED":
                return
            if not any(run.active for run in self.of(job_id)):
                self.submit(job, user=job["creator_user_name"], trigger="CONTINUOUS")

    def stop(self) -> None:
        """Ends all runs and waits until they have ended."""
        with self._store.lock:
            self._closed = True
            for timer in self._timers.values():
                timer.cancel()
            going = list(self._going.values())
        for event, _ in going:
            event.set()
        for _, thread in going:
            thread.join()

    def _begin(self, run: Run) -> None:
        event = threading.Event()
        thread = threading.Thread(target=self._carry, args=(run, event), name=f"run {run.run_id}", daemon=True)
        self._going[run.run_id] = (event, thread)
        thread.start()

    def _carry(self, run: Run, event: threading.Event) -> None:
        def keep_record() -> None:
            with self._store.lock:
                self._keep_record(run)

        with self._store.lock:
            if not event.is_set():
                run.phase = "RUNNING"
            keep_record()
        try:
            self._work(run, event, keep_record)
        except Exception:  # ours, not the run's: told, so that nobody waits for its end
            _interrupt(run, traceback.format_exc())
        with self._store.lock:
            if event.is_set() and run.phase == "RUNNING":  # nobody cancelled it
                _interrupt(run, STOPPED)
            elif run.active:
                _conclude(run)
            self._keep_record(run)
            del self._going[run.run_id]
            self._after(run)

    def _after(self, run: Run) -> None:
        """The next run of the queue, or of a continuous job."""
        if self._closed:
            return
        waiting = [other for other in self.of(run.job_id) if other.phase == "QUEUED"]
        if waiting:
            waiting[0].phase = "PENDING"
            self._begin(waiting[0])
            self._keep_record(waiting[0])
        elif "continuous" in (self._store.get("jobs", run.job_id) or {}).get("settings", {}):
            failures = self._failures.get(run.job_id, 0) + 1 if run.result == "FAILED" else 0
            self._failures[run.job_id] = failures
            delay = min(self._delay * 2 ** max(failures - 1, 0), LONGEST)
            timer = threading.Timer(delay, self.keep, (run.job_id,))
            timer.daemon = True
            self._timers[run.job_id] = timer
            timer.start()

    def _keep_record(self, run: Run) -> None:
        self._store.put("runs", run.run_id, run.written())


def _interrupt(run: Run, message: str) -> None:
    for each in (*run.tasks, run):
        if each.active or each is run:
            each.finish("", message, "INTERNAL_ERROR")


def _conclude(run: Run) -> None:
    """A run's end from those of its tasks."""
    results = {task.result for task in run.tasks}
    failed = next((task for task in run.tasks if task.result == "FAILED"), None)
    if "CANCELED" in results or run.phase == "TERMINATING":
        run.finish("CANCELED", "Run cancelled.")
    elif failed is not None:
        run.finish("FAILED", f"Task {failed.key} failed with message: {failed.message}.")
    else:
        run.finish("SUCCESS")
