"""Where the tasks of a job run: clusters that are there and can work, or serverless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyPath, closest_match
from headrace.errors import Problem

DEFINED = {"job_cluster_key": "job_clusters", "environment_key": "environments"}
CLUSTERS = ("job_cluster_key", "new_cluster", "existing_cluster_id")
COMPUTING = ("notebook_task", "python_wheel_task", "spark_python_task")  # others run elsewhere, or nowhere


def is_serverless(task: Mapping[str, Any]) -> bool:
    """Whether a task runs on no cluster of its own."""
    computes = any(key in task for key in COMPUTING)
    return "environment_key" in task or (computes and not any(key in task for key in CLUSTERS))


def check_clusters(job: Job) -> Iterator[Problem]:
    """The clusters and environments of tasks that are not defined, and the clusters that cannot start."""
    for key, listed in DEFINED.items():
        yield from _defined(job, key, listed)
    for at, task in job.work:
        yield from _cluster(job, task.get("new_cluster"), (*at, "new_cluster"))
    for number, one in _entries(job, "job_clusters"):
        yield from _cluster(job, one.get("new_cluster"), ("job_clusters", number, "new_cluster"))


def _defined(job: Job, key: str, listed: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, one in _entries(job, listed):
        name = one.get(key)
        if isinstance(name, str) and name in first:
            fix = f"give each its own; the first is at {job.where(listed, first[name], key)}"
            yield job.problem((listed, number, key), "has the key of another", fix)
        elif isinstance(name, str):
            first[name] = number
    for at, task in job.work:
        name = task.get(key)
        if isinstance(name, str) and not isinstance(name, Unresolved) and name not in first:
            fix = closest_match(name, first, f"define it under {listed}" if not first else "")
            message = f"uses the {key} '{name}', which is not defined"
            yield job.problem((*at, key), message, fix)


def _cluster(job: Job, cluster: Any, at: KeyPath) -> Iterator[Problem]:
    if not isinstance(cluster, dict) or "policy_id" in cluster:  # a policy may say all of it
        return
    settings = cluster.get("spark_conf")
    single = cluster.get("is_single_node") is True or (
        isinstance(settings, dict) and settings.get("spark.databricks.cluster.profile") == "singleNode"
    )
    if not single and "num_workers" not in cluster and "autoscale" not in cluster:
        yield job.problem(at, "has no workers", "add num_workers: 1, or is_single_node: true")
    elif not single and cluster.get("num_workers") == 0 and "autoscale" not in cluster:
        fix = "write num_workers: 1, or is_single_node: true"
        yield job.problem((*at, "num_workers"), "has no workers", fix)
    if "node_type_id" not in cluster and "instance_pool_id" not in cluster:
        yield job.problem(at, "has no node type", "add node_type_id: …")


def _entries(job: Job, key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    listed = job.body.get(key)
    for number, one in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(one, dict):
            yield number, one
