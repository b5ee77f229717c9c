"""The tasks of a run in their order: which may start, what becomes of those that may not, and an end before the end."""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable, Mapping

import yaml

from headrace.testing.workspace.http_messages import ApiError
from headrace.testing.workspace.job_run import Run, TaskRun
from headrace.testing.workspace.task_environment import Places
from headrace.testing.workspace.task_process import FAILED, Child

LOOK = 0.05  # seconds between two looks at a child
RUN_IF: Mapping[str, Callable[[set[str]], bool]] = {
    "ALL_SUCCESS": lambda results: results <= {"SUCCESS"},
    "ALL_DONE": lambda results: True,
    "ALL_FAILED": lambda results: results <= {"FAILED"},
    "NONE_FAILED": lambda results: not results & {"FAILED", "UPSTREAM_FAILED"},
    "AT_LEAST_ONE_SUCCESS": lambda results: "SUCCESS" in results,
    "AT_LEAST_ONE_FAILED": lambda results: "FAILED" in results,
}


class Work:
    """Carries out a run's tasks, or only says so."""

    def __init__(self, places: Places, *, execute: bool, grace: float) -> None:
        self._places, self._execute, self._grace = places, execute, grace

    def __call__(self, run: Run, event: threading.Event, keep: Callable[[], None]) -> None:
        """Returns when all tasks have ended, or when they were ended because the event was set."""
        if not self._execute:
            _pretend(run, event, keep)
            return
        going: dict[str, Child] = {}
        while any(task.active for task in run.tasks):
            if event.is_set():
                self._end(run, going)
                return
            for task in run.tasks:
                if task.key in going and going[task.key].ended():
                    _judge(task, going.pop(task.key))
                    keep()
                elif task.phase == "PENDING" and _may_start(run, task):
                    self._start(run, task, going)
                    keep()
            event.wait(LOOK)

    def _start(self, run: Run, task: TaskRun, going: dict[str, Child]) -> None:
        if "python_wheel_task" not in run.definition(task.key):
            _fail(task, "Only a python_wheel_task is carried out here")
            return
        try:
            going[task.key] = Child(run, task.key, task.run_id, self._places)
            task.phase = "RUNNING"
        except (OSError, zipfile.BadZipFile, yaml.YAMLError, ApiError) as error:
            _fail(task, f"Library installation failed: {error}")

    def _end(self, run: Run, going: dict[str, Child]) -> None:
        for child in going.values():
            child.terminate()
        limit = time.monotonic() + self._grace
        while not all(child.ended() for child in going.values()) and time.monotonic() < limit:
            time.sleep(LOOK)
        for child in going.values():
            child.kill()
        for task in run.tasks:
            if task.active:
                task.finish("CANCELED", "Run cancelled.")


def _pretend(run: Run, event: threading.Event, keep: Callable[[], None]) -> None:
    """No child is started: a continuous run goes on until its end is asked for, any other is a success."""
    for task in run.tasks:
        task.phase = "RUNNING"
    keep()
    if run.continuous:
        event.wait()
    for task in run.tasks:
        task.finish("CANCELED" if run.continuous else "SUCCESS")


def _may_start(run: Run, task: TaskRun) -> bool:
    """Whether all that the task depends on has ended well; ends the task when it has not."""
    definition = run.definition(task.key)
    needed = {each["task_key"] for each in definition.get("depends_on") or []}
    before = [other for other in run.tasks if other.key in needed]
    if any(other.active for other in before):
        return False
    results = {other.result for other in before}
    if not before or RUN_IF[definition["run_if"]](results):
        return True
    failed = results & {"FAILED", "UPSTREAM_FAILED"}
    task.finish("UPSTREAM_FAILED" if failed else "EXCLUDED", "An upstream task did not succeed.")
    return False


def _judge(task: TaskRun, child: Child) -> None:
    failure = child.failure()
    if failure is None:
        task.finish("SUCCESS")
    else:
        _fail(task, *failure)


def _fail(task: TaskRun, error: str, trace: str = "") -> None:
    task.error, task.trace = error, trace
    task.finish("FAILED", FAILED)
