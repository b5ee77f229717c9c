"""The targets and jobs of databricks.yml as frozen values, still without what only a workspace and a release know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.config.databricks.references import put_in
from headrace.config.locations import KeyLocations, KeyPath
from headrace.errors import Problem

if TYPE_CHECKING:
    from headrace.config.databricks.databricks_yml import Resources

# What a job is made of: the list, what one of it is called, the key that names it.
PARTS = {
    "tasks": ("task", "task_key"),
    "job_clusters": ("job cluster", "job_cluster_key"),
    "environments": ("environment", "environment_key"),
}


@dataclass(frozen=True)
class Target:
    """One target of databricks.yml, with what stands above all targets put in."""

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
        """Whether each person has a copy of their own."""
        return self.mode == "development"


@dataclass(frozen=True)
class Job:
    """One job: as it is written, or as one target has it."""

    key: str
    body: dict[str, Any]
    lines: KeyLocations
    target: str = ""

    @property
    def tasks(self) -> list[tuple[int, dict[str, Any]]]:
        """The tasks that are well formed, each with its number."""
        tasks = self.body.get("tasks")
        return [
            (number, task)
            for number, task in enumerate(tasks if isinstance(tasks, list) else [])
            if isinstance(task, dict)
        ]

    @property
    def work(self) -> list[tuple[KeyPath, dict[str, Any]]]:
        """What is run, each with its place: the tasks, and for a loop the task inside of it."""
        found: list[tuple[KeyPath, dict[str, Any]]] = []
        for number, task in self.tasks:
            found.append((("tasks", number), task))
            loop = task.get("for_each_task")
            if isinstance(loop, dict) and isinstance(loop.get("task"), dict):
                found.append((("tasks", number, "for_each_task", "task"), loop["task"]))
        return found

    def where(self, *path: str | int) -> str:
        """file:line of one of its keys."""
        return self.lines.where("resources", "jobs", self.key, *path)

    def problem(self, at: KeyPath, message: str, fix: str) -> Problem:
        """Something that is wrong with it, or with one of its tasks or clusters, at one of its keys."""
        return Problem(self.where(*at), f"job '{self.key}'{self._part(at)} {message}", fix)

    def _part(self, at: KeyPath) -> str:
        for listed, (noun, key) in PARTS.items():
            if at[:1] == (listed,) and len(at) > 1 and isinstance(at[1], int):
                one = self.body[listed][at[1]]
                name = one.get(key) if isinstance(one, dict) else None
                return f", {noun} '{name}'" if isinstance(name, str) else f", {noun} {at[1] + 1}"
        return ""


def jobs_of(resources: Resources, target: Target) -> tuple[tuple[Job, ...], list[Problem]]:
    """The jobs as one target has them, its variables put in, and what is wrong with their references."""
    problems: list[Problem] = []
    known = known_in(resources.name, target.name, target.variables)
    jobs = []
    for job in resources.jobs.values():
        body = put_in(job.body, known, job.lines, ("resources", "jobs", job.key), problems)
        jobs.append(replace(job, target=target.name, body=body))
    return tuple(jobs), problems


def known_in(bundle: str, target: str, variables: dict[str, Any]) -> dict[str, Any]:
    """What references stand for in one target."""
    return {
        "bundle.name": bundle,
        "bundle.target": target,
        **{f"var.{name}": value for name, value in variables.items()},
    }


def in_targets(names: Sequence[str]) -> str:
    """Some targets, as a message names them."""
    return f"target{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"
