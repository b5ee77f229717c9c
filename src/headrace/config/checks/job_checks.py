"""Check a job on its own: its tasks, the dependencies between tasks, and its schedule."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.config.cycles import find_cycle
from headrace.config.databricks.cron import cron_error, is_time_zone
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.job_grammar import intended_keys, job_grammar
from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyPath, fix_for_unknown_name
from headrace.errors import Problem

RETRY_KEYS = ("max_retries", "min_retry_interval_millis", "retry_on_timeout")


def check_job(job: Job) -> Iterator[Problem]:
    """Yield the problems of a job that do not depend on pipelines and environments."""
    has_tasks = "tasks" in intended_keys(job.body, job_grammar().kinds["JobSettings"])
    if not has_tasks or job.body.get("tasks") == []:  # the grammar reports malformed tasks
        yield job.problem(("tasks",), "has no tasks", "add one: tasks: [{task_key: …}]")
    yield from _check_task_keys(job)
    yield from _check_dependencies(job)
    yield from _check_schedule(job)
    max_runs = job.body.get("max_concurrent_runs", 1)
    if isinstance(max_runs, int) and not isinstance(max_runs, bool) and max_runs != 1:
        message = f"may have {max_runs} concurrent runs, but two runs of a stream would share its checkpoint"
        if max_runs < 1:
            message = f"can never run: max_concurrent_runs is {max_runs}"
        yield job.problem(("max_concurrent_runs",), message, "remove max_concurrent_runs: the default is 1")
    if "continuous" in job.body:
        yield from _check_continuous(job)


def _check_task_keys(job: Job) -> Iterator[Problem]:
    """Yield each task whose key an earlier task has."""
    first_indexes: dict[str, int] = {}  # the index of the first task with each key
    for task_index, task in job.tasks:
        key = task.get("task_key")
        if not isinstance(key, str) or isinstance(key, Unresolved):
            continue
        if key in first_indexes:
            fix = f"use a different task_key; the first is at {job.where('tasks', first_indexes[key], 'task_key')}"
            yield job.problem(("tasks", task_index, "task_key"), "has a task_key that is already used", fix)
        first_indexes.setdefault(key, task_index)


def dependencies(job: Job) -> dict[str, dict[str, KeyPath]]:
    """Return the dependencies of each task, by the key of the task.

    The dependencies of one task are the keys of the tasks that it depends on, each with the key path of the entry in
    `depends_on`. Unresolved keys are omitted.
    """
    depends_on: dict[str, dict[str, KeyPath]] = {}
    for task_index, task in job.tasks:
        others = depends_on.setdefault(str(task.get("task_key")), {})
        entries = task.get("depends_on")
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            other = entry.get("task_key") if isinstance(entry, dict) else None
            if isinstance(other, str) and not isinstance(other, Unresolved):
                others.setdefault(other, ("tasks", task_index, "depends_on", index))
    return depends_on


def _check_dependencies(job: Job) -> Iterator[Problem]:
    """Yield the dependencies on unknown tasks, and the dependencies that form a cycle."""
    depends_on = dependencies(job)
    keys = [task.get("task_key") for _, task in job.tasks]
    are_all_keys_known = all(isinstance(key, str) and not isinstance(key, Unresolved) for key in keys)
    for task, others in depends_on.items():
        for other, path in others.items():
            if other == task:
                yield job.problem(path, "depends on itself", "remove this dependency")
            elif other not in depends_on and are_all_keys_known:
                fix = fix_for_unknown_name(other, depends_on.keys() - {task}, "remove this dependency")
                yield job.problem(path, f"depends on the unknown task '{other}'", fix)
    graph = {
        task: [other for other in others if other in depends_on and other != task]
        for task, others in depends_on.items()
    }
    while cycle := find_cycle(graph):
        cycle[1:] = reversed(cycle[1:])  # now each task depends on the next one in the list, and the last on the first
        tasks = " → ".join(f"'{task}'" for task in [*cycle, cycle[0]])
        path = depends_on[cycle[0]][cycle[1]]
        yield job.problem(path, f"depends on itself through other tasks: {tasks}", "remove one of these dependencies")
        graph[cycle[0]].remove(cycle[1])  # the next search finds another cycle


def _check_schedule(job: Job) -> Iterator[Problem]:
    schedule = job.body.get("schedule")
    if not isinstance(schedule, dict):
        return
    expression, zone = schedule.get("quartz_cron_expression"), schedule.get("timezone_id")
    if isinstance(expression, str) and not isinstance(expression, Unresolved) and (error := cron_error(expression)):
        message = f"has the invalid schedule '{expression}': {error}"
        fix = "write a Quartz expression like '0 0 6 * * ?', which means every day at 06:00"
        yield job.problem(("schedule", "quartz_cron_expression"), message, fix)
    if isinstance(zone, str) and not isinstance(zone, Unresolved) and not is_time_zone(zone):
        yield job.problem(("schedule", "timezone_id"), f"has the unknown time zone '{zone}'", _fix_for_time_zone(zone))


def _fix_for_time_zone(zone: str) -> str:
    import zoneinfo  # imported only for bundles that have an unknown time zone

    return fix_for_unknown_name(zone, zoneinfo.available_timezones(), "write a name like UTC or Europe/Berlin")


def _check_continuous(job: Job) -> Iterator[Problem]:
    """Yield the keys that a continuous job and its tasks cannot have."""
    for key in ("schedule", "trigger", "triggers"):
        if key in job.body:
            yield job.problem((key,), f"has both continuous and {key}", f"keep one of continuous, {key}")
    for task_index, task in job.tasks:
        if "depends_on" in task:
            message = "depends on another task, but the job is continuous"
            fix = "run all steps in one task, or give the job a schedule"
            yield job.problem(("tasks", task_index, "depends_on"), message, fix)
        for key in RETRY_KEYS:
            if key in task:
                message = f"sets {key}, but the job is continuous"
                fix = f"remove {key}: Databricks restarts a continuous job automatically"
                yield job.problem(("tasks", task_index, key), message, fix)
