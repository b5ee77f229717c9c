"""Validation of job definitions with the rules and error messages of the platform, and the defaults that it adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import available_timezones

from headrace.config.databricks.cron import cron_error
from headrace.config.databricks.job_grammar import job_grammar
from headrace.testing.workspace.http_messages import ApiError, Document, invalid_parameter

# The allowed values of fields with these names, at any depth of a definition.
ENUM_FIELDS: Mapping[str, tuple[str, ...]] = {
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
INTEGER_FIELDS = ("max_concurrent_runs", "timeout_seconds", "max_retries", "min_retry_interval_millis", "num_workers")
COMPUTE_FIELDS = ("job_cluster_key", "new_cluster", "existing_cluster_id")
# The keys in these fields are chosen by users, so they are not names of fields.
FREE_FORM_FIELDS = ("named_parameters", "tags", "custom_tags", "spark_conf", "spark_env_vars", "base_parameters")


def validate(settings: Document) -> None:
    """Raise ApiError with the first problem of a job definition that the platform rejects."""
    try:
        problem = next(_problems(settings), None)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The definition has a wrong structure, such as a list instead of an object.
        raise ApiError(400, "MALFORMED_REQUEST", f"Could not parse request object: {error!r}") from error
    if problem is not None:
        raise invalid_parameter(problem)


def _stored_fields() -> set[str]:
    """Return the fields of a definition that the platform stores. It silently drops all others."""
    return set(job_grammar().kinds["JobSettings"]) - {"permissions"}  # a job's permissions have an API of their own


def normalize(definition: Document) -> Document:
    """Validate a definition and return it as the platform stores it, with the platform's defaults."""
    stored_fields = _stored_fields()
    settings = {field: value for field, value in definition.items() if field in stored_fields and value is not None}
    validate(settings)
    settings.setdefault("name", "Untitled")
    settings |= {"format": "MULTI_TASK"}
    for field, default in (("email_notifications", {}), ("webhook_notifications", {}), ("timeout_seconds", 0)):
        settings.setdefault(field, default)
    settings["max_concurrent_runs"] = int(settings.get("max_concurrent_runs", 1))
    for field in ("continuous", "schedule"):
        if field in settings:
            settings[field] = {"pause_status": "UNPAUSED", **settings[field]}
    if "tasks" in settings:
        settings["tasks"] = [_normalize_task(task) for task in settings["tasks"]]
    return settings


def _normalize_task(task: Document) -> Document:
    normalized = {"run_if": "ALL_SUCCESS", "timeout_seconds": 0, "email_notifications": {}, **task}
    if "depends_on" in normalized:
        normalized["depends_on"] = sorted(normalized["depends_on"], key=lambda upstream: str(upstream["task_key"]))
    return normalized


def _problems(settings: Document) -> Iterator[str]:
    yield from _value_problems(settings)
    tasks = settings.get("tasks") or []
    yield from _task_problems(tasks)
    upstream_keys = {
        task["task_key"]: [upstream["task_key"] for upstream in task.get("depends_on") or []] for task in tasks
    }
    yield from _dependency_problems(upstream_keys)
    yield from _compute_problems(settings, tasks)
    if settings.get("schedule") is not None:
        yield from _schedule_problems(settings["schedule"])
    if settings.get("continuous") is not None:
        yield from _continuous_problems(settings, tasks)
    if not 0 <= int(settings.get("max_concurrent_runs", 1)) <= 1000:
        yield "max_concurrent_runs must be between 0 and 1000"


def _value_problems(value: Any, field: str = "") -> Iterator[str]:
    """Yield problems of enum and integer fields at any depth."""
    if isinstance(value, dict):
        for name, nested in value.items():
            if name not in FREE_FORM_FIELDS:
                yield from _value_problems(nested, name)
    elif isinstance(value, list):
        for item in value:
            yield from _value_problems(item, field)
    elif field in ENUM_FIELDS and value not in ENUM_FIELDS[field]:
        allowed = ", ".join(ENUM_FIELDS[field])
        yield f"Could not parse request object: {value!r} is not a value of {field}: {allowed}"
    elif field in INTEGER_FIELDS and not str(value).lstrip("-").isdigit():
        yield f"Could not parse request object: {field}: expected a number, got {value!r}"


def _task_problems(tasks: list[Document]) -> Iterator[str]:
    seen: set[str] = set()
    for task in tasks:
        key = task.get("task_key")
        if not isinstance(key, str) or not key:
            yield "Missing required field: settings.tasks.task_key"
        elif key in seen:
            yield f"Duplicate task key '{key}': task keys must be unique within a job."
        else:
            seen.add(key)
        types = [field for field in task if field.endswith("_task")]
        if len(types) != 1:
            yield f"Task '{key}' must have exactly one type of task, and has {', '.join(types) or 'none'}."
        wheel = task.get("python_wheel_task")
        if wheel is not None and not (wheel.get("package_name") and wheel.get("entry_point")):
            yield f"Task '{key}': python_wheel_task needs package_name and entry_point."
        if wheel is not None and wheel.get("parameters") and wheel.get("named_parameters"):
            yield f"Task '{key}': only one of parameters and named_parameters can be given."


def _dependency_problems(upstream_keys: Mapping[str, list[str]]) -> Iterator[str]:
    for key, upstream in upstream_keys.items():
        for upstream_key in upstream:
            if upstream_key not in upstream_keys:
                yield f"Task '{key}' depends on task '{upstream_key}', which is not defined."
    # Repeatedly remove the tasks that depend on no remaining task. The tasks that remain are in a cycle, or depend on
    # one.
    remaining = dict(upstream_keys)
    while ready := [key for key, upstream in remaining.items() if not set(upstream) & set(remaining)]:
        for key in ready:
            del remaining[key]
    if remaining:
        yield f"The dependencies of tasks form a cycle: {', '.join(sorted(remaining))}."


def _compute_problems(settings: Document, tasks: list[Document]) -> Iterator[str]:
    clusters = [cluster.get("job_cluster_key") for cluster in settings.get("job_clusters") or []]
    environments = [environment.get("environment_key") for environment in settings.get("environments") or []]
    for keys, field in ((clusters, "job_cluster_key"), (environments, "environment_key")):
        if len(set(keys)) < len(keys):
            yield f"Duplicate {field}: {', '.join(map(str, keys))}."
    for cluster in settings.get("job_clusters") or []:
        yield from _cluster_problems(cluster.get("new_cluster") or {})
    for task in tasks:
        compute = [field for field in COMPUTE_FIELDS if task.get(field)]
        environment = task.get("environment_key")
        if len(compute) > 1:
            yield f"Only one of {', '.join(COMPUTE_FIELDS)} can be specified."
        if not compute and environment is None and ("python_wheel_task" in task or "spark_python_task" in task):
            yield "One of job_cluster_key, new_cluster, or existing_cluster_id must be specified."
        if task.get("job_cluster_key") not in (None, *clusters):
            yield f"Job cluster '{task['job_cluster_key']}' is not defined in field 'job_clusters'."
        if environment not in (None, *environments):
            yield f"Environment '{environment}' is not defined in field 'environments'."
        if environment is not None and task.get("libraries"):
            yield "Libraries field is not supported for serverless task, please specify libraries in environment."
        if "new_cluster" in compute:
            yield from _cluster_problems(task["new_cluster"])


def _cluster_problems(cluster: Document) -> Iterator[str]:
    if not cluster.get("spark_version"):
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.spark_version"
    if not any(cluster.get(field) for field in ("node_type_id", "instance_pool_id", "policy_id", "is_single_node")):
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.node_type_id"
    is_single_node = cluster.get("is_single_node") or "singleNode" in (cluster.get("spark_conf") or {}).values()
    if "autoscale" not in cluster and "num_workers" not in cluster and not is_single_node:
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.size"
    if "num_workers" in cluster and int(cluster["num_workers"]) == 0 and not is_single_node:
        yield "NumWorkers could be 0 only for SingleNode clusters."


def _schedule_problems(schedule: Document) -> Iterator[str]:
    expression, time_zone = schedule.get("quartz_cron_expression"), schedule.get("timezone_id")
    if not expression or not time_zone:
        yield "A schedule needs quartz_cron_expression and timezone_id."
        return
    problem = cron_error(str(expression))
    if problem:
        yield f"Invalid quartz_cron_expression: '{expression}': {problem}."
    if time_zone not in available_timezones():
        yield f"Invalid timezone_id: '{time_zone}'."


def _continuous_problems(settings: Document, tasks: list[Document]) -> Iterator[str]:
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
