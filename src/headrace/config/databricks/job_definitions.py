"""The targets and jobs of databricks.yml as frozen values.

They still contain references to the workspace, and libraries such as dist/*.whl. A deployment replaces both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.config.databricks.references import check_references, resolve_references
from headrace.config.locations import KeyLocations, KeyPath
from headrace.errors import Problem

if TYPE_CHECKING:
    from headrace.config.databricks.databricks_yml import Resources

# The lists of a job whose entries have a name. For each list: the word for an entry in messages, and the key that has
# the name.
JOB_LISTS = {
    "tasks": ("task", "task_key"),
    "job_clusters": ("job cluster", "job_cluster_key"),
    "environments": ("environment", "environment_key"),
}


@dataclass(frozen=True)
class Target:
    """One target of databricks.yml, including the top-level settings that apply to it."""

    name: str
    mode: str | None = None  # development or production; None if it is not set, or invalid
    default: bool = False
    host: str = ""
    root_path: str = ""
    profile: str = ""
    run_as: dict[str, str] = field(default_factory=dict)
    permissions: tuple[dict[str, str], ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)  # the resolved values by name

    @property
    def is_development(self) -> bool:
        """Whether each user deploys a separate copy of the bundle."""
        return self.mode == "development"


@dataclass(frozen=True)
class Job:
    """One job: as written (`target` is empty), or with its references resolved for one target.

    `body` is the mapping that defines the job, and `locations` has the lines of the file that contains the mapping.
    """

    key: str
    body: dict[str, Any]
    locations: KeyLocations
    target: str = ""

    @property
    def tasks(self) -> list[tuple[int, dict[str, Any]]]:
        """The tasks, each with its index in the list. Tasks that are not mappings are omitted."""
        tasks = self.body.get("tasks")
        return [
            (index, task)
            for index, task in enumerate(tasks if isinstance(tasks, list) else [])
            if isinstance(task, dict)
        ]

    @property
    def runnable_tasks(self) -> list[tuple[KeyPath, dict[str, Any]]]:
        """The tasks, and the tasks inside each for_each_task, each with its key path."""
        runnable: list[tuple[KeyPath, dict[str, Any]]] = []
        for index, task in self.tasks:
            runnable.append((("tasks", index), task))
            loop = task.get("for_each_task")
            if isinstance(loop, dict) and isinstance(loop.get("task"), dict):
                runnable.append((("tasks", index, "for_each_task", "task"), loop["task"]))
        return runnable

    def where(self, *path: str | int) -> str:
        """Return file:line of the key at a path in the job; of the job itself if the path is empty."""
        return self.locations.where("resources", "jobs", self.key, *path)

    def problem(self, path: KeyPath, message: str, fix: str) -> Problem:
        """Return a problem of the key at a path in the job.

        `message` is a predicate such as "has no tasks". The subject, such as "job 'a', task 'b'", is added.
        """
        return Problem(self.where(*path), f"job '{self.key}'{self._describe_entry(path)} {message}", fix)

    def _describe_entry(self, path: KeyPath) -> str:
        """Return the task, job cluster or environment that a path is in, in the form ", task 'b'".

        Return an empty string for a path outside the lists in JOB_LISTS.
        """
        for list_key, (noun, key) in JOB_LISTS.items():
            if path[:1] == (list_key,) and len(path) > 1 and isinstance(path[1], int):
                entry = self.body[list_key][path[1]]
                name = entry.get(key) if isinstance(entry, dict) else None
                return f", {noun} '{name}'" if isinstance(name, str) else f", {noun} {path[1] + 1}"
        return ""


def resolve_jobs(resources: Resources, target: Target) -> tuple[tuple[Job, ...], list[Problem]]:
    """Return all jobs with their references resolved for one target, and the problems of unknown references."""
    known = known_references(resources.name, target.name, target.variables)
    jobs = tuple(
        replace(job, target=target.name, body=resolve_references(job.body, known)) for job in resources.jobs.values()
    )
    problems = [
        problem
        for job in resources.jobs.values()
        for problem in check_references(job.body, known, job.locations, ("resources", "jobs", job.key))
    ]
    return jobs, problems


def known_references(bundle: str, target: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the references in one target, by name.

    References to the workspace are not included: their values are unknown until a deployment.
    """
    return {
        "bundle.name": bundle,
        "bundle.target": target,
        **{f"var.{name}": value for name, value in variables.items()},
    }


def format_targets(names: Sequence[str]) -> str:
    """Return the names of targets as text for a message: "targets 'dev', 'prod'"."""
    return f"target{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"
