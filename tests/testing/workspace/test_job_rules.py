"""Job definitions that the platform refuses, each with status 400 and a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue

from workspaces import CLUSTER, continuous, create, job

Job = dict[str, Any]


def with_dependencies(key: str, *upstream: str) -> Callable[[Job], None]:
    def change(definition: Job) -> None:
        (task,) = [task for task in definition["tasks"] if task["task_key"] == key]
        task["depends_on"] = [{"task_key": upstream_key} for upstream_key in upstream]

    return change


def with_task_fields(**fields: Any) -> Callable[[Job], None]:
    """Return a function that sets fields of the first task; None deletes a field."""

    def change(definition: Job) -> None:
        task = definition["tasks"][0]
        task.update(fields)
        for field in [field for field, value in fields.items() if value is None]:
            del task[field]

    return change


def with_job_fields(**fields: Any) -> Callable[[Job], None]:
    return lambda definition: definition.update(fields)


def with_cluster_fields(**fields: Any) -> Callable[[Job], None]:
    """Return a function that sets fields of the job cluster; None deletes a field."""
    cluster = {field: value for field, value in {**CLUSTER, **fields}.items() if value is not None}
    return with_job_fields(job_clusters=[{"job_cluster_key": "main", "new_cluster": cluster}])


SCHEDULE = {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "Europe/Berlin"}
REFUSED = {
    "missing dependency": (job("a"), with_dependencies("a", "b"), "'b', which is not defined"),
    "self-dependency": (job("a"), with_dependencies("a", "a"), "cycle"),
    "duplicate key": (job("a", "a"), with_job_fields(), "Duplicate task key 'a'"),
    "no key": (job("a"), with_task_fields(task_key=None), "task_key"),
    "no task type": (job("a"), with_task_fields(python_wheel_task=None), "exactly one type"),
    "two task types": (job("a"), with_task_fields(notebook_task={}), "exactly one type"),
    "no entry point": (job("a"), with_task_fields(python_wheel_task={"package_name": "p"}), "entry_point"),
    "unknown cluster": (
        job("a"),
        with_task_fields(job_cluster_key="other"),
        "'other' is not defined in field 'job_clusters'",
    ),
    "no cluster": (job("a"), with_task_fields(job_cluster_key=None), "must be specified"),
    "two clusters": (job("a"), with_task_fields(new_cluster=CLUSTER), "Only one of"),
    "unknown environment": (job("a"), with_task_fields(job_cluster_key=None, environment_key="e"), "Environment 'e'"),
    "libraries without a cluster": (
        job("a", environments=[{"environment_key": "e", "spec": {"client": "1"}}]),
        with_task_fields(job_cluster_key=None, environment_key="e"),
        "serverless",
    ),
    "no workers": (job("a"), with_cluster_fields(num_workers=None), "new_cluster.size"),
    "zero workers": (job("a"), with_cluster_fields(num_workers=0), "SingleNode"),
    "no node type": (job("a"), with_cluster_fields(node_type_id=None), "node_type_id"),
    "no spark version": (job("a"), with_cluster_fields(spark_version=None), "spark_version"),
    "invalid mode": (job("a"), with_cluster_fields(data_security_mode="ANY"), "data_security_mode"),
    "invalid pause status": (job("a"), with_job_fields(continuous={"pause_status": "BOGUS"}), "'BOGUS'"),
    "invalid retry mode": (job("a"), with_job_fields(continuous={"task_retry_mode": "MAYBE"}), "'MAYBE'"),
    "invalid run if": (job("a"), with_task_fields(run_if="SOMETIMES"), "'SOMETIMES'"),
    "not a number": (job("a"), with_task_fields(max_retries="two"), "'two'"),
    "continuous with dependencies": (continuous("a", "b"), with_dependencies("b", "a"), "continuous"),
    "continuous with a schedule": (continuous("a"), with_job_fields(schedule=SCHEDULE), "continuous and schedule"),
    "continuous with retries": (continuous("a"), with_task_fields(max_retries=1), "continuous"),
    "continuous with two concurrent runs": (continuous("a"), with_job_fields(max_concurrent_runs=2), "only one run"),
    "invalid cron": (
        job("a"),
        with_job_fields(schedule={**SCHEDULE, "quartz_cron_expression": "* *"}),
        "Invalid quartz_cron_expression: .* 6 or 7",
    ),
    "invalid time zone": (job("a"), with_job_fields(schedule={**SCHEDULE, "timezone_id": "Mars/Base"}), "Mars/Base"),
    "no time zone": (job("a"), with_job_fields(schedule={"quartz_cron_expression": "0 0 * * * ?"}), "timezone_id"),
    "too many runs": (job("a"), with_job_fields(max_concurrent_runs=1001), "between 0 and 1000"),
}


@pytest.mark.parametrize("valid, change, message", REFUSED.values(), ids=REFUSED)
def test_invalid_definition_is_refused(
    client: WorkspaceClient, valid: Job, change: Callable[[Job], None], message: str
) -> None:
    definition = {**valid, "tasks": [dict(task) for task in valid["tasks"]]}
    change(definition)
    with pytest.raises(InvalidParameterValue, match=message):
        create(client, definition)
    assert list(client.jobs.list()) == []


def test_only_cyclic_dependencies_are_refused(client: WorkspaceClient) -> None:
    definition = job("a", "b", "c")
    with_dependencies("c", "b", "a")(definition)
    create(client, definition)
    with_dependencies("a", "c")(definition)
    with pytest.raises(InvalidParameterValue, match="cycle: a, c"):
        create(client, definition)


def test_serverless_and_single_node_jobs_are_accepted(client: WorkspaceClient) -> None:
    serverless = job("a", schedule=SCHEDULE, environments=[{"environment_key": "e", "spec": {"client": "1"}}])
    with_task_fields(job_cluster_key=None, libraries=None, environment_key="e")(serverless)
    create(client, serverless)
    single_node = job("a")
    with_cluster_fields(num_workers=0, spark_conf={"spark.databricks.cluster.profile": "singleNode"})(single_node)
    create(client, single_node)
