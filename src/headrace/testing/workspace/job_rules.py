"""What the platform refuses in a job's definition, in the words that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import available_timezones

from headrace.config.databricks.cron import cron_error
from headrace.testing.workspace.http_messages import ApiError, Document, invalid

ENUMS: Mapping[str, tuple[str, ...]] = {
    "pause_status": ("PAUSED", "UNPAUSED"),
    "task_retry_mode": ("NEVER", "ON_FAILURE"),
    "edit_mode": ("EDITABLE", "UI_LOCKED"),
    "format": ("MULTI_TASK", "SINGLE_TASK"),
    "performance_target": ("PERFORMANCE_OPTIMIZED", "STANDARD"),
    "run_if": ("ALL_DONE", "ALL_FAILED", "ALL_SUCCESS", "AT_LEAST_ONE_FAILED", "AT_LEAST_ONE_SUCCESS", "NONE_FAILED"),
    "data_security_mode": (
        "DATA_SECURITY_MODE_AUTO",
        "DATA_SECURITY_MODE_DEDICATED",
        "DATA_SECURITY_MODE_STANDARD",
        "LEGACY_PASSTHROUGH",
        "LEGACY_SINGLE_USER",
        "LEGACY_SINGLE_USER_STANDARD",
        "LEGACY_TABLE_ACL",
        "NONE",
        "SINGLE_USER",
        "USER_ISOLATION",
    ),
    "runtime_engine": ("NULL", "PHOTON", "STANDARD"),
}
NUMBERS = ("max_concurrent_runs", "timeout_seconds", "max_retries", "min_retry_interval_millis", "num_workers")
COMPUTE = ("job_cluster_key", "new_cluster", "existing_cluster_id")
FREE = ("named_parameters", "tags", "custom_tags", "spark_conf", "spark_env_vars", "base_parameters")


def check(settings: Document) -> None:
    """Refuses a definition that the platform would refuse."""
    try:
        problem = next(_problems(settings), None)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a list where an object belongs, or the like
        raise ApiError(400, "MALFORMED_REQUEST", f"Could not parse request object: {error!r}") from error
    if problem is not None:
        raise invalid(problem)


def _problems(settings: Document) -> Iterator[str]:
    yield from _words(settings)
    tasks = settings.get("tasks") or []
    yield from _tasks(tasks)
    yield from _order({task["task_key"]: [each["task_key"] for each in task.get("depends_on") or []] for task in tasks})
    yield from _compute(settings, tasks)
    if settings.get("schedule") is not None:
        yield from _schedule(settings["schedule"])
    if settings.get("continuous") is not None:
        yield from _continuous(settings, tasks)
    if not 0 <= int(settings.get("max_concurrent_runs", 1)) <= 1000:
        yield "max_concurrent_runs must be between 0 and 1000"


def _words(value: Any, key: str = "") -> Iterator[str]:
    """Wrong words and types, wherever they stand."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in FREE:
                yield from _words(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _words(part, key)
    elif key in ENUMS and value not in ENUMS[key]:
        yield f"Could not parse request object: {value!r} is not a value of {key}: {', '.join(ENUMS[key])}"
    elif key in NUMBERS and not str(value).lstrip("-").isdigit():
        yield f"Could not parse request object: {key}: expected a number, got {value!r}"


def _tasks(tasks: list[Document]) -> Iterator[str]:
    seen: set[str] = set()
    for task in tasks:
        key = task.get("task_key")
        if not isinstance(key, str) or not key:
            yield "Missing required field: settings.tasks.task_key"
        elif key in seen:
            yield f"Duplicate task key '{key}': task keys must be unique within a job."
        else:
            seen.add(key)
        kinds = [name for name in task if name.endswith("_task")]
        if len(kinds) != 1:
            yield f"Task '{key}' must have exactly one type of task, and has {', '.join(kinds) or 'none'}."
        wheel = task.get("python_wheel_task")
        if wheel is not None and not (wheel.get("package_name") and wheel.get("entry_point")):
            yield f"Task '{key}': python_wheel_task needs package_name and entry_point."
        if wheel is not None and wheel.get("parameters") and wheel.get("named_parameters"):
            yield f"Task '{key}': only one of parameters and named_parameters can be given."


def _order(needs: Mapping[str, list[str]]) -> Iterator[str]:
    for key, needed in needs.items():
        for each in needed:
            if each not in needs:
                yield f"Task '{key}' depends on task '{each}', which is not defined."
    left = dict(needs)
    while ready := [key for key, needed in left.items() if not set(needed) & set(left)]:
        for key in ready:
            del left[key]
    if left:
        yield f"The dependencies of tasks form a cycle: {', '.join(sorted(left))}."


def _compute(settings: Document, tasks: list[Document]) -> Iterator[str]:
    clusters = [cluster.get("job_cluster_key") for cluster in settings.get("job_clusters") or []]
    environments = [each.get("environment_key") for each in settings.get("environments") or []]
    for keys, what in ((clusters, "job_cluster_key"), (environments, "environment_key")):
        if len(set(keys)) < len(keys):
            yield f"Duplicate {what}: {', '.join(map(str, keys))}."
    for cluster in settings.get("job_clusters") or []:
        yield from _cluster(cluster.get("new_cluster") or {})
    for task in tasks:
        given = [name for name in COMPUTE if task.get(name)]
        environment = task.get("environment_key")
        if len(given) > 1:
            yield f"Only one of {', '.join(COMPUTE)} can be specified."
        if not given and environment is None and ("python_wheel_task" in task or "spark_python_task" in task):
            yield "One of job_cluster_key, new_cluster, or existing_cluster_id must be specified."
        if task.get("job_cluster_key", None) not in (None, *clusters):
            yield f"Job cluster '{task['job_cluster_key']}' is not defined in field 'job_clusters'."
        if environment not in (None, *environments):
            yield f"Environment '{environment}' is not defined in field 'environments'."
        if environment is not None and task.get("libraries"):
            yield "Libraries field is not supported for serverless task, please specify libraries in environment."
        if "new_cluster" in given:
            yield from _cluster(task["new_cluster"])


def _cluster(cluster: Document) -> Iterator[str]:
    if not cluster.get("spark_version"):
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.spark_version"
    if not any(cluster.get(name) for name in ("node_type_id", "instance_pool_id", "policy_id", "is_single_node")):
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.node_type_id"
    single = cluster.get("is_single_node") or "singleNode" in (cluster.get("spark_conf") or {}).values()
    if "autoscale" not in cluster and "num_workers" not in cluster and not single:
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.size"
    if "num_workers" in cluster and int(cluster["num_workers"]) == 0 and not single:
        yield "NumWorkers could be 0 only for SingleNode clusters."


def _schedule(schedule: Document) -> Iterator[str]:
    expression, zone = schedule.get("quartz_cron_expression"), schedule.get("timezone_id")
    if not expression or not zone:
        yield "A schedule needs quartz_cron_expression and timezone_id."
        return
    fault = cron_error(str(expression))
    if fault:
        yield f"Invalid quartz_cron_expression: '{expression}': {fault}."
    if zone not in available_timezones():
        yield f"Invalid timezone_id: '{zone}'."


def _continuous(settings: Document, tasks: list[Document]) -> Iterator[str]:
    for other in ("schedule", "trigger"):
        if settings.get(other) is not None:
            yield f"Only one of continuous and {other} can be specified."
    if int(settings.get("max_concurrent_runs", 1)) != 1:
        yield "A continuous job can have only one run: max_concurrent_runs must be 1."
    for task in tasks:
        if task.get("depends_on"):
            yield f"Task '{task['task_key']}' has dependencies, which a continuous job cannot have."
        if task.get("max_retries") or task.get("min_retry_interval_millis") or task.get("retry_on_timeout"):
            yield f"Task '{task['task_key']}' has a retry policy, which a continuous job cannot have."
