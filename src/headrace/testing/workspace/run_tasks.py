"""Execution of a run's tasks: dependencies, `run_if`, failures and cancellation."""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable, Mapping

import yaml

from headrace.config.checks.compute_checks import check_compute
from headrace.config.databricks.job_definitions import Job
from headrace.config.locations import KeyLocations
from headrace.testing.workspace.http_messages import ApiError
from headrace.testing.workspace.job_run import Run, TaskRun
from headrace.testing.workspace.task_environment import TaskEnvironment
from headrace.testing.workspace.task_process import TaskProcess

POLL_INTERVAL_S = 0.05
WORKLOAD_FAILED_MESSAGE = "Workload failed, see run output for details"
# For each value of `run_if`: whether a task can start, given the set of its upstream tasks' results.
RUN_IF: Mapping[str, Callable[[set[str]], bool]] = {
    "ALL_SUCCESS": lambda results: results <= {"SUCCESS"},
    "ALL_DONE": lambda results: True,
    "ALL_FAILED": lambda results: results <= {"FAILED"},
    "NONE_FAILED": lambda results: not results & {"FAILED", "UPSTREAM_FAILED"},
    "AT_LEAST_ONE_SUCCESS": lambda results: "SUCCESS" in results,
    "AT_LEAST_ONE_FAILED": lambda results: "FAILED" in results,
}


class TaskRunner:
    """Executes the tasks of a run in child processes, or simulates them without processes if `execute` is false.

    A task that is cancelled gets SIGTERM, and SIGKILL after `grace_s` seconds. `simulate` is called with each simulated
    run after its tasks have started.
    """

    def __init__(
        self,
        environment: TaskEnvironment,
        *,
        execute: bool,
        grace_s: float,
        simulate: Callable[[Run], None] | None = None,
    ) -> None:
        self._environment, self._execute, self._grace_s = environment, execute, grace_s
        self._simulate = simulate or (lambda run: None)

    def __call__(self, run: Run, stop: threading.Event, save: Callable[[], None]) -> None:
        """Execute the tasks until all have ended, or cancel them once `stop` is set.

        Call `save` when tasks have started or ended, but not after cancelling tasks and not at the end of a simulated
        run: the code that calls this object must save the run afterwards.
        """
        if not self._execute:
            _simulate(run, stop, save, self._simulate)
            return
        processes: dict[str, TaskProcess] = {}
        while any(task.is_active for task in run.tasks):
            if stop.is_set():
                self._cancel(run, processes)
                return
            for task in run.tasks:
                if task.key in processes and processes[task.key].clean_up_if_ended():
                    _finish(task, processes.pop(task.key))
                    save()
                elif task.phase == "PENDING" and not _has_active_upstream(run, task):
                    if _fulfills_run_if(run, task):
                        self._start(run, task, processes)
                    else:
                        _exclude(run, task)
                    save()
            stop.wait(POLL_INTERVAL_S)

    def _start(self, run: Run, task: TaskRun, processes: dict[str, TaskProcess]) -> None:
        if "python_wheel_task" not in run.task_definition(task.key):
            _fail(task, "The local workspace supports only python_wheel_task")
            return
        if reason := _unsupported_compute(run, task.key):
            _fail(task, f"[JVM_ATTRIBUTE_NOT_SUPPORTED] {reason}")
            return
        try:
            processes[task.key] = TaskProcess(run, task.key, task.run_id, self._environment)
            task.phase = "RUNNING"
        except (OSError, zipfile.BadZipFile, yaml.YAMLError, ApiError) as error:
            _fail(task, f"Library installation failed: {error}")

    def _cancel(self, run: Run, processes: dict[str, TaskProcess]) -> None:
        for process in processes.values():
            process.terminate()
        deadline = time.monotonic() + self._grace_s
        while time.monotonic() < deadline:
            if all(process.clean_up_if_ended() for process in processes.values()):
                break
            time.sleep(POLL_INTERVAL_S)
        for process in processes.values():
            process.kill()
        for task in run.tasks:
            if task.is_active:
                task.finish("CANCELED", "Run cancelled.")


def _simulate(run: Run, stop: threading.Event, save: Callable[[], None], simulate: Callable[[Run], None]) -> None:
    """Start no processes. A run of a continuous job is active until it is stopped; any other run succeeds at once."""
    for task in run.tasks:
        task.phase = "RUNNING"
    save()
    simulate(run)
    if run.is_continuous:
        stop.wait()
    for task in run.tasks:
        task.finish("CANCELED" if run.is_continuous else "SUCCESS")


def _unsupported_compute(run: Run, key: str) -> str:
    """Return why a task that runs a pipeline would fail on the compute that it has; empty if it would not."""
    settings = {**run.settings, "tasks": [run.task_definition(key)]}
    settings.pop("continuous", None)
    problems = check_compute(Job(str(run.settings.get("name", "")), settings, KeyLocations("")))
    return next((problem.message for problem in problems), "")


def _upstream_tasks(run: Run, task: TaskRun) -> list[TaskRun]:
    dependencies = run.task_definition(task.key).get("depends_on") or []
    upstream_keys = {dependency["task_key"] for dependency in dependencies}
    return [other for other in run.tasks if other.key in upstream_keys]


def _has_active_upstream(run: Run, task: TaskRun) -> bool:
    return any(upstream.is_active for upstream in _upstream_tasks(run, task))


def _fulfills_run_if(run: Run, task: TaskRun) -> bool:
    """Return whether a task can start after its upstream tasks have ended. A task without upstream tasks always can."""
    results = {upstream.result for upstream in _upstream_tasks(run, task)}
    return not results or RUN_IF[run.task_definition(task.key)["run_if"]](results)


def _exclude(run: Run, task: TaskRun) -> None:
    """End a task that can never start because of the results of its upstream tasks."""
    results = {upstream.result for upstream in _upstream_tasks(run, task)}
    has_failed_upstream = bool(results & {"FAILED", "UPSTREAM_FAILED"})
    task.finish("UPSTREAM_FAILED" if has_failed_upstream else "EXCLUDED", "An upstream task did not succeed.")


def _finish(task: TaskRun, process: TaskProcess) -> None:
    failure = process.failure()
    if failure is None:
        task.finish("SUCCESS")
    else:
        _fail(task, failure.error, failure.trace)


def _fail(task: TaskRun, error: str, trace: str = "") -> None:
    task.error, task.trace = error, trace
    task.finish("FAILED", WORKLOAD_FAILED_MESSAGE)
