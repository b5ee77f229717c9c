"""An environment as a deployment target: its workspace or cluster, the deployment's directory and the user."""

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
class DeployTarget:
    """An environment that can be deployed to, opened for one user."""

    bundle: str
    definition: Target  # the environment's target in databricks.yml
    remote: Remote
    root: str  # the directory of the deployment: its state, its lock and its releases
    user: str

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.definition.name

    @property
    def short_name(self) -> str:
        """The user name without the mail domain, usable in paths."""
        return short_user_name(self.user)

    def release_path(self, release: str) -> str:
        """Return the directory of a release."""
        return f"{self.root}/releases/{release}"

    def job_tag(self, job: str) -> str:
        """Return the tag that identifies a job of this environment."""
        return f"{self.bundle}/{self.name}/{job}"


def short_user_name(user: str) -> str:
    """Return a user name without the mail domain, usable in paths."""
    return re.sub(r"\W", "_", user.partition("@")[0])


def open_target(root: Path, name: str, *, option: str = "--env") -> DeployTarget:
    """Return environment `name` as a deployment target; log in to its workspace if it has one.

    `root` is the directory of the bundle. `option` is the command-line option that selected the environment; if the
    environment has no target, the error message suggests this option with other environments.
    """
    resources = read_resources(root)
    draft, problems = read_environment(root, name, {}, lenient=True)
    if problems := resources.problems + problems:
        raise ConfigurationError.of(sort_problems(problems))
    assert draft.environment is not None
    if name not in resources.targets:
        names = ", ".join(resources.targets)
        fix = f"pass {option} with an environment that has one: {names}" if names else "add a target to databricks.yml"
        raise ConfigurationError(
            f"environment {name!r} cannot be deployed to: it has no target in databricks.yml", fix=fix
        )
    definition = resources.targets[name]
    remote = _remote(draft.environment, definition)
    user = remote.user()
    root_path = _root_path(resources.name, definition, draft.environment, user)
    return DeployTarget(resources.name, definition, remote, root_path, user)


def _remote(environment: Environment, definition: Target) -> Remote:
    if environment.engine.kind == "databricks":
        from headrace.deploy.databricks_workspace import Workspace

        return Workspace(_host(definition), definition.profile)
    if isinstance(environment.engine, SparkEngine) and environment.engine.releases:
        from headrace.deploy.spark_cluster import Cluster

        return Cluster(Path(environment.engine.releases))
    raise ConfigurationError(
        f"environment {environment.name!r} has no directory for releases",
        where=f"conf/{environment.name}.yml",
        fix="set `engine: {kind: spark, master: …, releases: DIRECTORY}` or `engine: {kind: databricks}`",
    )


def _host(definition: Target) -> str:
    """Return the workspace's host: DATABRICKS_HOST, or the host in databricks.yml if the variable is not set.

    Raise ConfigurationError if the two differ, unless DATABRICKS_HOST is a loopback address (`headrace workspace`).
    Return "" if neither is set; the SDK then uses its own configuration.
    """
    configured_host = definition.host
    variable_host = os.environ.get("DATABRICKS_HOST", "").rstrip("/")
    if not variable_host:
        return configured_host
    if not configured_host or LOOPBACK.match(variable_host):
        return variable_host
    if variable_host != configured_host.rstrip("/"):
        raise ConfigurationError(
            f"the host of target {definition.name!r} is {configured_host}, but DATABRICKS_HOST is {variable_host}",
            where="databricks.yml",
            fix=f"unset DATABRICKS_HOST, or choose an environment whose host is {variable_host}",
        )
    return variable_host


def _root_path(bundle: str, definition: Target, environment: Environment, user: str) -> str:
    """Return the directory of the deployment.

    On a Spark cluster, this directory is below the engine's `releases`. In a workspace, it is the target's `root_path`,
    by default a directory in the user's home.
    """
    if isinstance(environment.engine, SparkEngine):
        return f"{str(environment.engine.releases).rstrip('/')}/{bundle}/{definition.name}"
    home = f"/Workspace/Users/{user}"
    path = definition.root_path or f"{home}/.headrace/{bundle}/{definition.name}"
    path = path.replace("${workspace.current_user.userName}", user)
    path = path.replace("${workspace.current_user.short_name}", short_user_name(user))
    return re.sub(r"\A~", home, path).rstrip("/")
