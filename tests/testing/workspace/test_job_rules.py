"""What the platform refuses in a job, each with a 400 that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue

from workspaces import CLUSTER, continuous, create, job

Job = dict[str, Any]


def depends(key: str, *on: str) -> Callable[[Job], None]:
    def change(given: Job) -> None:
        (task,) = [task for task in given["tasks"] if task["task_key"] == key]
        task["depends_on"] = [{"task_key": other} for other in on]

    return change


def first(**keys: Any) -> Callable[[Job], None]:
    def change(given: Job) -> None:
        task = given["tasks"][0]
        task.update(keys)
        for key in [key for key, value in keys.items() if value is None]:
            del task[key]

    return change


def whole(**keys: Any) -> Callable[[Job], None]:
    return lambda given: given.update(keys)


def cluster(**keys: Any) -> Callable[[Job], None]:
    new = {key: value for key, value in {**CLUSTER, **keys}.items() if value is not None}
    return whole(job_clusters=[{"job_cluster_key": "main", "new_cluster": new}])


SCHEDULE = {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "Europe/Berlin"}
REFUSED = {
    "missing dependency": (job("a"), depends("a", "b"), "'b', which is not defined"),
    "itself": (job("a"), depends("a", "a"), "cycle"),
    "double key": (job("a", "a"), whole(), "Duplicate task key 'a'"),
    "no key": (job("a"), first(task_key=None), "task_key"),
    "no kind": (job("a"), first(python_wheel_task=None), "exactly one type"),
    "two kinds": (job("a"), first(notebook_task={}), "exactly one type"),
    "no entry point": (job("a"), first(python_wheel_task={"package_name": "p"}), "entry_point"),
    "unknown cluster": (job("a"), first(job_cluster_key="other"), "'other' is not defined in field 'job_clusters'"),
    "no cluster": (job("a"), first(job_cluster_key=None), "must be specified"),
    "two clusters": (job("a"), first(new_cluster=CLUSTER), "Only one of"),
    "unknown environment": (job("a"), first(job_cluster_key=None, environment_key="e"), "Environment 'e'"),
    "libraries without a cluster": (
        job("a", environments=[{"environment_key": "e", "spec": {"client": "1"}}]),
        first(job_cluster_key=None, environment_key="e"),
        "serverless",
    ),
    "no workers": (job("a"), cluster(num_workers=None), "new_cluster.size"),
    "zero workers": (job("a"), cluster(num_workers=0), "SingleNode"),
    "no node type": (job("a"), cluster(node_type_id=None), "node_type_id"),
    "no spark version": (job("a"), cluster(spark_version=None), "spark_version"),
    "bad mode": (job("a"), cluster(data_security_mode="ANY"), "data_security_mode"),
    "bad pause status": (job("a"), whole(continuous={"pause_status": "BOGUS"}), "'BOGUS'"),
    "bad retry mode": (job("a"), whole(continuous={"task_retry_mode": "MAYBE"}), "'MAYBE'"),
    "bad run if": (job("a"), first(run_if="SOMETIMES"), "'SOMETIMES'"),
    "not a number": (job("a"), first(max_retries="two"), "'two'"),
    "continuous with dependencies": (continuous("a", "b"), depends("b", "a"), "continuous"),
    "continuous with a schedule": (continuous("a"), whole(schedule=SCHEDULE), "continuous and schedule"),
    "continuous with retries": (continuous("a"), first(max_retries=1), "continuous"),
    "continuous twice at once": (continuous("a"), whole(max_concurrent_runs=2), "only one run"),
    "bad cron": (job("a"), whole(schedule={**SCHEDULE, "quartz_cron_expression": "* *"}), "instead of 6 or 7"),
    "bad time zone": (job("a"), whole(schedule={**SCHEDULE, "timezone_id": "Mars/Base"}), "Mars/Base"),
    "no time zone": (job("a"), whole(schedule={"quartz_cron_expression": "0 0 * * * ?"}), "timezone_id"),
    "too many runs": (job("a"), whole(max_concurrent_runs=1001), "between 0 and 1000"),
}


@pytest.mark.parametrize("given, change, said", REFUSED.values(), ids=REFUSED)
def test_refused(client: WorkspaceClient, given: Job, change: Callable[[Job], None], said: str) -> None:
    good = {**given, "tasks": [dict(task) for task in given["tasks"]]}
    change(good)
    with pytest.raises(InvalidParameterValue, match=said):
        create(client, good)
    assert list(client.jobs.list()) == []


def test_a_cycle_is_refused_and_an_order_is_not(client: WorkspaceClient) -> None:
    given = job("a", "b", "c")
    depends("c", "b", "a")(given)
    create(client, given)
    depends("a", "c")(given)
    with pytest.raises(InvalidParameterValue, match="cycle: a, c"):
        create(client, given)


def test_what_may_be_is_taken(client: WorkspaceClient) -> None:
    serverless = job("a", schedule=SCHEDULE, environments=[{"environment_key": "e", "spec": {"client": "1"}}])
    first(job_cluster_key=None, libraries=None, environment_key="e")(serverless)
    create(client, serverless)
    alone = job("a")
    cluster(num_workers=0, spark_conf={"spark.databricks.cluster.profile": "singleNode"})(alone)
    create(client, alone)
