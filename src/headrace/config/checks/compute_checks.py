"""Check that tasks which run pipelines have compute on which Headrace works: clusters with dedicated access."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.checks.cluster_checks import is_serverless
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.locations import KeyPath
from headrace.errors import Problem

# Access modes in which several users share a cluster, so that its Spark can be used only through Spark Connect. With
# "auto", the platform may choose such a mode.
CONNECT_MODES = ("USER_ISOLATION", "DATA_SECURITY_MODE_STANDARD", "DATA_SECURITY_MODE_AUTO")
RUNTIME = re.compile(r"(\d+)\.(?:\d+|x)\D")  # such as 18.x-scala2.13 or 17.3.x-photon-scala2.13
FIRST_RUNTIME = 18  # the first one with Spark 4.1, the oldest version of Spark with which Headrace works
SPARK_RANGE = "4.1 to 4.2"
CONNECT = "through Spark Connect, which Headrace does not support yet"


def check_compute(job: Job) -> Iterator[Problem]:
    """Yield the tasks that run pipelines serverless, on shared clusters, or with another version of Spark.

    Also yield serverless tasks of continuous jobs.
    """
    calls = {call.path: call for call in find_task_calls(job)}
    seen: set[KeyPath] = set()
    for path, task in job.runnable_tasks:
        if not is_serverless(task):
            cluster_path, cluster = _cluster_of(job, task, path)
            if path in calls and cluster_path not in seen:
                seen.add(cluster_path)
                yield from _check_cluster(job, cluster, cluster_path)
        elif path in calls:
            fix = "give it a job cluster: job_cluster_key: …"
            yield job.problem(path, f"runs a pipeline serverless, that is, {CONNECT}", fix)
        elif "continuous" in job.body:
            fix = "give the job a schedule, or the task a cluster"
            yield job.problem(path, "runs serverless, but the job is continuous", fix)


def _cluster_of(job: Job, task: Mapping[str, Any], path: KeyPath) -> tuple[KeyPath, Any]:
    """Return the definition of a task's new cluster with its key path; None for an existing or undefined cluster."""
    if "new_cluster" in task:
        return (*path, "new_cluster"), task["new_cluster"]
    clusters = job.body.get("job_clusters")
    for index, entry in enumerate(clusters if isinstance(clusters, list) else []):
        if isinstance(entry, dict) and entry.get("job_cluster_key") == task.get("job_cluster_key"):
            return ("job_clusters", index, "new_cluster"), entry.get("new_cluster")
    return path, None


def _check_cluster(job: Job, cluster: Any, path: KeyPath) -> Iterator[Problem]:
    """Yield the problems of a cluster on which a pipeline runs."""
    if not isinstance(cluster, dict):
        return
    mode, runtime = cluster.get("data_security_mode"), cluster.get("spark_version")
    if mode in CONNECT_MODES:
        message = f"has access mode {mode}, in which code uses Spark {CONNECT}"
        yield job.problem((*path, "data_security_mode"), message, "write data_security_mode: SINGLE_USER")
    match = RUNTIME.match(f"{runtime}-") if isinstance(runtime, str) and not isinstance(runtime, Unresolved) else None
    if match and int(match[1]) < FIRST_RUNTIME:
        message = f"has runtime {runtime}, whose Spark is older than those that Headrace works with ({SPARK_RANGE})"
        yield job.problem((*path, "spark_version"), message, f"write spark_version: {FIRST_RUNTIME}.x-scala2.13")
