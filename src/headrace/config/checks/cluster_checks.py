"""Check where the tasks of a job run: on clusters that are defined and can start, or serverless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.job_grammar import intended_keys, job_grammar
from headrace.config.databricks.references import Unresolved
from headrace.config.locations import KeyPath, fix_for_unknown_name
from headrace.errors import Problem

# For each key by which a task refers to a job cluster or a serverless environment: the job's list that defines them.
LIST_OF_KEY = {"job_cluster_key": "job_clusters", "environment_key": "environments"}
CLUSTER_KEYS = ("job_cluster_key", "new_cluster", "existing_cluster_id")
# The kinds of tasks that run on a cluster or on serverless compute. Other tasks need neither.
COMPUTE_TASKS = ("notebook_task", "python_wheel_task", "spark_python_task")


def is_serverless(task: Mapping[str, Any]) -> bool:
    """Return whether a task runs on serverless compute.

    Such a task names a serverless environment, or has no cluster although its kind of task needs compute.
    """
    needs_compute = any(key in task for key in COMPUTE_TASKS)
    has_cluster = any(key in task for key in CLUSTER_KEYS)
    return "environment_key" in task or (needs_compute and not has_cluster)


def check_clusters(job: Job) -> Iterator[Problem]:
    """Yield the problems of a job's clusters and serverless environments.

    These are names that are defined twice, undefined names that tasks use, and clusters that cannot start.
    """
    for key, section in LIST_OF_KEY.items():
        yield from _check_definitions(job, key, section)
    for path, task in job.runnable_tasks:
        yield from _check_cluster(job, task.get("new_cluster"), (*path, "new_cluster"))
    for index, entry in _entries(job, "job_clusters"):
        yield from _check_cluster(job, entry.get("new_cluster"), ("job_clusters", index, "new_cluster"))


def _check_definitions(job: Job, key: str, section: str) -> Iterator[Problem]:
    """Yield the names that a list of the job defines twice, and the undefined names that tasks use.

    `section` is the job's key for the list. `key` is the key whose value is the name, both in the entries of the list
    and in tasks.
    """
    defined: dict[str, int] = {}  # the index of the entry that defines each name
    for index, entry in _entries(job, section):
        name = entry.get(key)
        if isinstance(name, str) and name in defined:
            fix = f"use a different {key}; the first is at {job.where(section, defined[name], key)}"
            yield job.problem((section, index, key), f"has a {key} that is already used", fix)
        elif isinstance(name, str):
            defined[name] = index
    if not _are_all_names_known(job, key, section):
        return
    for path, task in job.runnable_tasks:
        name = task.get(key)
        if isinstance(name, str) and not isinstance(name, Unresolved) and name not in defined:
            fix = fix_for_unknown_name(name, defined, f"define it under {section}" if not defined else "")
            yield job.problem((*path, key), f"uses the undefined {key} '{name}'", fix)


def _are_all_names_known(job: Job, key: str, section: str) -> bool:
    """Return whether the names that a list of the job defines are all known; True if the job has no such list.

    Return False if the list or an entry is malformed, if a name is missing or unresolved, or if the key of the list is
    misspelled. These problems are reported elsewhere.
    """
    if section not in job.body:
        # False if a misspelled key stands for the list.
        return section not in intended_keys(job.body, job_grammar().kinds["JobSettings"])
    entries = job.body[section]
    if not isinstance(entries, list):
        return False
    names = [entry.get(key) if isinstance(entry, dict) else None for entry in entries]
    return all(isinstance(name, str) and not isinstance(name, Unresolved) for name in names)


def _check_cluster(job: Job, cluster: Any, path: KeyPath) -> Iterator[Problem]:
    """Yield a problem if the definition of a cluster has no workers or no node type, without which it cannot start."""
    if not isinstance(cluster, dict) or "policy_id" in cluster:  # the policy may set all other keys
        return
    keys = intended_keys(cluster, job_grammar().kinds["ClusterSpec"])
    settings = cluster.get("spark_conf")
    is_single_node = cluster.get("is_single_node") is True or (
        isinstance(settings, dict) and settings.get("spark.databricks.cluster.profile") == "singleNode"
    )
    worker_keys = keys & {"num_workers", "autoscale"}
    if not is_single_node and not worker_keys:
        yield job.problem(path, "has no workers", "add num_workers: 1, or is_single_node: true")
    elif not is_single_node and worker_keys == {"num_workers"} and cluster.get("num_workers") == 0:
        fix = "write num_workers: 1, or is_single_node: true"
        yield job.problem((*path, "num_workers"), "has no workers", fix)
    if not keys & {"node_type_id", "instance_pool_id"}:
        yield job.problem(path, "has no node type", "add node_type_id: …")


def _entries(job: Job, section: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of a list of the job that are mappings, each with its index in the list."""
    entries = job.body.get(section)
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict):
            yield index, entry
