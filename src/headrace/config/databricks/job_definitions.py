"""The targets and jobs of databricks.yml as frozen values, before a workspace and a release add what only they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.config.databricks.references import check_references, resolve_references
from headrace.config.locations import KeyLocations, KeyPath
from headrace.errors import Problem

if TYPE_CHECKING:
    from headrace.config.databricks.databricks_yml import Resources

# The lists of a job: what an entry is called in messages, and the key that identifies it.
LISTS = {
    "tasks": ("task", "task_key"),
    "job_clusters": ("job cluster", "job_cluster_key"),
    "environments": ("environment", "environment_key"),
}


@dataclass(frozen=True)
class Target:
    """One target of databricks.yml, including the top-level settings."""

    name: str
    mode: str | None = None
    default: bool = False
    host: str = ""
    root_path: str = ""
    profile: str = ""
    run_as: dict[str, str] = field(default_factory=dict)
    permissions: tuple[dict[str, str], ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def is_development(self) -> bool:
        """Whether each user deploys a copy of their own."""
        return self.mode == "development"


@dataclass(frozen=True)
class Job:
    """One job: as written, or with the references of one target resolved."""

    key: str
    body: dict[str, Any]
    locations: KeyLocations
    target: str = ""

    @property
    def tasks(self) -> list[tuple[int, dict[str, Any]]]:
        """The well-formed tasks, each with its index."""
        tasks = self.body.get("tasks")
        return [
            (index, task)
            for index, task in enumerate(tasks if isinstance(tasks, list) else [])
            if isinstance(task, dict)
        ]

    @property
    def runnable_tasks(self) -> list[tuple[KeyPath, dict[str, Any]]]:
        """The tasks and the tasks inside a for_each_task, each with its key path."""
        runnable: list[tuple[KeyPath, dict[str, Any]]] = []
        for index, task in self.tasks:
            runnable.append((("tasks", index), task))
            loop = task.get("for_each_task")
            if isinstance(loop, dict) and isinstance(loop.get("task"), dict):
                runnable.append((("tasks", index, "for_each_task", "task"), loop["task"]))
        return runnable

    def where(self, *path: str | int) -> str:
        """Return the file:line of a key."""
        return self.locations.where("resources", "jobs", self.key, *path)

    def problem(self, path: KeyPath, message: str, fix: str) -> Problem:
        """Return a problem at a key. The message continues a sentence about the job, or its task or cluster."""
        return Problem(self.where(*path), f"job '{self.key}'{self._entry(path)} {message}", fix)

    def _entry(self, path: KeyPath) -> str:
        for listed, (noun, key) in LISTS.items():
            if path[:1] == (listed,) and len(path) > 1 and isinstance(path[1], int):
                entry = self.body[listed][path[1]]
                name = entry.get(key) if isinstance(entry, dict) else None
                return f", {noun} '{name}'" if isinstance(name, str) else f", {noun} {path[1] + 1}"
        return ""


def resolve_jobs(resources: Resources, target: Target) -> tuple[tuple[Job, ...], list[Problem]]:
    """Return the jobs with their references resolved for one target, and the problems of the references."""
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
    """Return the values of all references in one target, by name."""
    return {
        "bundle.name": bundle,
        "bundle.target": target,
        **{f"var.{name}": value for name, value in variables.items()},
    }


def format_targets(names: Sequence[str]) -> str:
    """Return the names of targets for a message."""
    return f"target{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"
