"""A job against itself: its tasks, the order that they wait in, when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.config.cycles import find_cycle
from headrace.config.databricks.cron import is_time_zone, wrong_cron
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyPath, closest_match
from headrace.errors import Problem

RETRIES = ("max_retries", "min_retry_interval_millis", "retry_on_timeout")


def check_job(job: Job) -> Iterator[Problem]:
    """What keeps the job from running as it is written."""
    if not job.tasks:
        yield job.problem(("tasks",), "has no tasks", "add one: tasks: [{task_key: …}]")
    yield from _task_keys(job)
    yield from _dependencies(job)
    yield from _schedule(job)
    runs = job.body.get("max_concurrent_runs", 1)
    if isinstance(runs, int) and not isinstance(runs, bool) and runs != 1:
        message = f"may run {runs} times at once: two runs of a stream would share its checkpoint"
        if runs < 1:
            message = f"may never run: max_concurrent_runs is {runs}"
        yield job.problem(("max_concurrent_runs",), message, "take it out: it is 1 by itself")
    if "continuous" in job.body:
        yield from _continuous(job)


def _task_keys(job: Job) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, task in job.tasks:
        key = task.get("task_key")
        if not isinstance(key, str) or isinstance(key, Unresolved):
            continue
        if key in first:
            fix = f"give each its own key; the first is at {job.where('tasks', first[key], 'task_key')}"
            yield job.problem(("tasks", number, "task_key"), "has the key of another", fix)
        first.setdefault(key, number)


def waits(job: Job) -> dict[str, dict[str, KeyPath]]:
    """For each task those that it waits for, and where that is written."""
    found: dict[str, dict[str, KeyPath]] = {}
    for number, task in job.tasks:
        others = found.setdefault(str(task.get("task_key")), {})
        listed = task.get("depends_on")
        for place, one in enumerate(listed if isinstance(listed, list) else []):
            other = one.get("task_key") if isinstance(one, dict) else None
            if isinstance(other, str) and not isinstance(other, Unresolved):
                others.setdefault(other, ("tasks", number, "depends_on", place))
    return found


def _dependencies(job: Job) -> Iterator[Problem]:
    found = waits(job)
    for task, others in found.items():
        for other, at in others.items():
            if other == task:
                yield job.problem(at, "waits for itself", "take it out")
            elif other not in found:
                fix = closest_match(other, found.keys() - {task}, "take it out")
                yield job.problem(at, f"waits for '{other}', which is not there", fix)
    before = {task: [other for other in others if other in found and other != task] for task, others in found.items()}
    while circle := find_cycle(before):
        circle[1:] = reversed(circle[1:])  # told the other way round: each waits for the next
        words = " → ".join(f"'{task}'" for task in [*circle, circle[0]])
        at = found[circle[0]][circle[1]]
        yield job.problem(at, f"waits for itself, by way of others: {words}", "take out one of the depends_on")
        before[circle[0]].remove(circle[1])


def _schedule(job: Job) -> Iterator[Problem]:
    schedule = job.body.get("schedule")
    if not isinstance(schedule, dict):
        return
    expression, zone = schedule.get("quartz_cron_expression"), schedule.get("timezone_id")
    if isinstance(expression, str) and not isinstance(expression, Unresolved) and (wrong := wrong_cron(expression)):
        message = f"has a schedule that cannot be read, '{expression}': {wrong}"
        fix = "write it like '0 0 6 * * ?', which is at six each day"
        yield job.problem(("schedule", "quartz_cron_expression"), message, fix)
    if isinstance(zone, str) and not isinstance(zone, Unresolved) and not is_time_zone(zone):
        yield job.problem(("schedule", "timezone_id"), f"has the unknown time zone '{zone}'", _zone_like(zone))


def _zone_like(zone: str) -> str:
    import zoneinfo

    return closest_match(zone, zoneinfo.available_timezones(), "write it like UTC or Europe/Berlin")


def _continuous(job: Job) -> Iterator[Problem]:
    for key in ("schedule", "trigger", "triggers"):
        if key in job.body:
            yield job.problem((key,), f"is continuous and has a {key} too", f"keep one of continuous, {key}")
    for number, task in job.tasks:
        if "depends_on" in task:
            message = "waits for another, but the job is continuous"
            fix = "let one task run all steps, or give the job a schedule"
            yield job.problem(("tasks", number, "depends_on"), message, fix)
        for key in RETRIES:
            if key in task:
                message = f"sets {key}, but the job is continuous"
                fix = "take it out: a continuous job starts again by itself"
                yield job.problem(("tasks", number, key), message, fix)
