"""One environment as deployments see it: where its releases, its state and its jobs are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Target
from headrace.config.environment_files import read_environment
from headrace.config.load import sort_problems
from headrace.config.models import Environment, SparkEngine
from headrace.deploy.remote import Remote
from headrace.errors import ConfigurationError

LOOPBACK = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/?\Z")


@dataclass(frozen=True)
class Place:
    """One environment, reached as one user."""

    bundle: str
    target: Target
    remote: Remote
    root: str
    user: str

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.target.name

    @property
    def short_name(self) -> str:
        """The user without the mail's domain, as a name in paths."""
        return short(self.user)

    def release(self, release: str) -> str:
        """Where a release lies."""
        return f"{self.root}/releases/{release}"

    def tag(self, job: str) -> str:
        """What a job is found again by."""
        return f"{self.bundle}/{self.name}/{job}"


def short(user: str) -> str:
    """A user's name without the mail's domain, as a name in paths."""
    return re.sub(r"\W", "_", user.partition("@")[0])


def open_place(root: Path, name: str, *, option: str = "--env") -> Place:
    """The environment of that name, with a login to where it is. `option` is the one that chose it."""
    resources = read_resources(root)
    draft, problems = read_environment(root, name, {}, lenient=True)
    if problems := resources.problems + problems:
        raise ConfigurationError.of(sort_problems(problems))
    assert draft.environment is not None
    if name not in resources.targets:
        names = ", ".join(resources.targets)
        raise ConfigurationError(
            f"environment {name!r} cannot be deployed to: it has no target in databricks.yml",
            fix=f"pass {option} with an environment that has one: {names}"
            if names
            else "add a target to databricks.yml",
        )
    target = resources.targets[name]
    remote = _remote(draft.environment, target)
    user = remote.user()
    return Place(resources.name, target, remote, _root(resources.name, target, draft.environment, user), user)


def _remote(environment: Environment, target: Target) -> Remote:
    if environment.engine.kind == "databricks":
        from headrace.deploy.databricks_workspace import Workspace

        return Workspace(_host(target), target.profile)
    if isinstance(environment.engine, SparkEngine) and environment.engine.releases:
        from headrace.deploy.spark_cluster import Cluster

        return Cluster(Path(environment.engine.releases))
    raise ConfigurationError(
        f"environment {environment.name!r} has no place for releases",
        where=f"conf/{environment.name}.yml",
        fix="engine: {kind: spark, master: …, releases: DIRECTORY}, or {kind: databricks}",
    )


def _host(target: Target) -> str:
    """The target's host; one on this machine, given as DATABRICKS_HOST, stands in for any."""
    given = os.environ.get("DATABRICKS_HOST", "").rstrip("/")
    if not target.host or not given or LOOPBACK.match(given):
        return given or target.host
    if given != target.host.rstrip("/"):
        raise ConfigurationError(
            f"target {target.name!r} is at {target.host}, and DATABRICKS_HOST says {given}",
            where="databricks.yml",
            fix="unset DATABRICKS_HOST, or name the other environment",
        )
    return given


def _root(bundle: str, target: Target, environment: Environment, user: str) -> str:
    """Where the target lies: where it says, else with its user."""
    if isinstance(environment.engine, SparkEngine):
        return f"{str(environment.engine.releases).rstrip('/')}/{bundle}/{target.name}"
    home = f"/Workspace/Users/{user}"
    path = target.root_path or f"{home}/.headrace/{bundle}/{target.name}"
    path = path.replace("${workspace.current_user.userName}", user)
    path = path.replace("${workspace.current_user.short_name}", short(user))
    return re.sub(r"\A~", home, path).rstrip("/")
