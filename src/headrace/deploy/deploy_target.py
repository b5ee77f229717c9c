"""An environment as a deployment target: its workspace or cluster, the deployment's directory and the user."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Target
from headrace.config.environment_files import EnvironmentDraft, is_absolute, read_environment
from headrace.config.load import sort_problems
from headrace.config.models import SparkEngine
from headrace.deploy.remote import Remote
from headrace.errors import ConfigurationError

# Added to the `root_path` of a target. The official tool uses this path itself, and deletes everything in it.
ROOT_SUFFIX = ".headrace"
HOST_VARIABLE = "DATABRICKS_HOST"
LOOPBACK = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/?\Z")


@dataclass(frozen=True)
class DeployTarget:
    """An environment that can be deployed to, opened for one user."""

    bundle: str
    definition: Target  # the environment's target in databricks.yml
    remote: Remote
    root: str  # the directory of the deployment: its state, its lock and its releases
    user: str
    first_root: str = ""  # the directory that earlier versions used; empty if it is the same

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


def open_target(root: Path, name: str, *, option: str = "--env", lenient: bool = False) -> DeployTarget:
    """Return environment `name` as a deployment target; log in to its workspace if it has one.

    `root` is the directory of the bundle. `option` is the command-line option that selected the environment; if the
    environment has no target, the error message suggests this option with other environments. If `lenient`, as for
    commands that handle an incident, only what identifies the target has to be valid: its host, its root path and the
    environment's engine.
    """
    resources = read_resources(root)
    draft, problems = read_environment(root, name, {}, lenient=True)
    definition = resources.targets.get(name)
    problems = resources.problems + problems
    kind, releases = _engine(draft)
    names_workspace = definition is not None and (definition.host or definition.profile or HOST_VARIABLE in os.environ)
    if names_workspace and not kind:  # the environment's file cannot be read
        kind = "databricks"
    is_identified = definition is not None and kind and "${var" not in definition.host + definition.root_path
    if problems and not (lenient and is_identified):
        raise ConfigurationError.of(sort_problems(problems))
    if definition is None:
        names = ", ".join(resources.targets)
        fix = f"pass {option} with an environment that has one: {names}" if names else "add a target to databricks.yml"
        raise ConfigurationError(
            f"environment {name!r} cannot be deployed to: it has no target in databricks.yml", fix=fix
        )
    if kind == "databricks":
        from headrace.deploy.databricks_workspace import Workspace

        workspace = Workspace(_host(definition), definition.profile)
        user = workspace.user()
        first_root = _workspace_path(definition.root_path, user)
        root_path = f"{first_root}{ROOT_SUFFIX}" if first_root else _home_root(resources.name, name, user)
        return DeployTarget(resources.name, definition, workspace, root_path, user, first_root)
    if kind == "spark" and releases:
        from headrace.deploy.spark_cluster import Cluster

        cluster, directory = Cluster(Path(releases)), releases.rstrip("/")
        return DeployTarget(resources.name, definition, cluster, f"{directory}/{resources.name}/{name}", cluster.user())
    raise ConfigurationError(
        f"environment {name!r} has no directory for releases",
        where=f"conf/{name}.yml",
        fix="set `engine: {kind: spark, master: …, releases: DIRECTORY}` or `engine: {kind: databricks}`",
    )


def _engine(draft: EnvironmentDraft) -> tuple[str, str]:
    """Return the kind of the environment's engine, and its directory for releases; empty texts if they are unknown.

    An environment that is not valid may have a valid engine.
    """
    if draft.environment is not None:
        engine = draft.environment.engine
        return engine.kind, str(engine.releases or "") if isinstance(engine, SparkEngine) else ""
    raw = draft.raw.get("engine")
    kind, releases = (raw.get("kind"), raw.get("releases")) if isinstance(raw, dict) else (None, None)
    is_path = isinstance(releases, str) and is_absolute(releases)
    return str(kind or ""), str(releases) if is_path else ""


def _host(definition: Target) -> str:
    """Return the workspace's host: DATABRICKS_HOST, or the host in databricks.yml if the variable is not set.

    Raise ConfigurationError if the two differ, unless DATABRICKS_HOST is a loopback address (`headrace workspace`).
    Return "" if neither is set; the SDK then uses its own configuration.
    """
    configured_host = definition.host
    variable_host = os.environ.get(HOST_VARIABLE, "").rstrip("/")
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


def _workspace_path(path: str, user: str) -> str:
    """Return a path of databricks.yml with the user's name and home."""
    path = path.replace("${workspace.current_user.userName}", user)
    path = path.replace("${workspace.current_user.short_name}", short_user_name(user))
    return re.sub(r"\A~", f"/Workspace/Users/{user}", path).rstrip("/")


def _home_root(bundle: str, target: str, user: str) -> str:
    """Return the directory of a deployment whose target has no `root_path`."""
    return f"/Workspace/Users/{user}/.headrace/{bundle}/{target}"
