"""A small bundle with three environments, and its deployment to a local workspace, as the commands do it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from headrace.checkpoints.heartbeat import Heartbeat, now
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.locations import KeyLocations
from headrace.deploy import planner
from headrace.deploy.apply import apply
from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget, open_target
from headrace.deploy.deployment import ApplyOptions
from headrace.deploy.drain import Timeouts
from headrace.deploy.plan import Plan
from headrace.deploy.state_store import StateStore
from headrace.release import releases
from headrace.release.releases import Release
from headrace.signatures.signature import Column, Input, Operator, Signature
from headrace.testing.workspace import LocalWorkspace
from headrace.testing.workspace.job_run import Run

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tiny"
version = "1.0"
[tool.hatch.build.targets.wheel]
packages = ["src/tiny"]
"""
PIPELINE = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
"""
ENVIRONMENT = """\
engine: {{kind: databricks}}
tables: {{catalog: {name}, schema: "tiny{person}"}}
checkpoints: /Volumes/{name}/tiny/checkpoints{person}
trigger: {{every: 30 seconds}}
sources: {{ticks: {{kind: rate}}}}
values: {{user: {user}}}
"""
DATABRICKS = """\
bundle: {name: tiny}
include: [resources/*.yml]
variables:
  user: {default: everybody}
targets:
  dev:
    mode: development
    variables: {user: "${workspace.current_user.short_name}"}
  staging:
    workspace: {root_path: /Workspace/Shared/tiny/staging}
  prod:
    mode: production
    workspace: {root_path: /Workspace/Shared/tiny/prod}
    run_as: {service_principal_name: 11111111-2222-3333-4444-555555555555}
    permissions: [{level: CAN_VIEW, group_name: readers}]
"""
CLUSTER = (
    "{job_cluster_key: main, new_cluster: {spark_version: 18.x-scala2.13, node_type_id: i3.xlarge, num_workers: 1, "
    "data_security_mode: SINGLE_USER}}"
)
TASK = """\
        - task_key: {key}
          job_cluster_key: main
          libraries: [{{whl: ../dist/*.whl}}]
          python_wheel_task:
            package_name: headrace
            entry_point: run
            named_parameters:
              pipeline: {pipeline}
              env: "${{bundle.target}}"
              conf: "${{workspace.file_path}}/conf"
              value: "user=${{var.user}}"
"""
LIVE = f"""\
resources:
  jobs:
    live:
      continuous: {{pause_status: UNPAUSED}}
      job_clusters: [{CLUSTER}]
      tasks:
{TASK.format(key="live", pipeline="p")}"""
NIGHTLY = f"""\
resources:
  jobs:
    nightly:
      schedule: {{quartz_cron_expression: "0 0 3 * * ?", timezone_id: UTC}}
      job_clusters: [{CLUSTER}]
      tasks:
{TASK.format(key="nightly", pipeline="q")}"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "runtime.lock": "click==8.3.0 --hash=sha256:" + "0" * 64 + "\n",
    ".gitignore": "dist/\n",
    "src/tiny/__init__.py": "",
    "conf/pipelines/p.yml": PIPELINE,
    "conf/pipelines/q.yml": PIPELINE.replace("landed", "landed_too"),
    "conf/local.yml": "engine: {kind: local}\ntables: {root: t}\ncheckpoints: c\nsources: {ticks: {kind: rate}}\n",
    "conf/dev.yml": ENVIRONMENT.format(name="dev", person="_${user}", user="{required: true}"),
    "conf/staging.yml": ENVIRONMENT.format(name="staging", person="", user="everybody"),
    "conf/prod.yml": ENVIRONMENT.format(name="prod", person="", user="everybody"),
    "databricks.yml": DATABRICKS,
    "resources/live.job.yml": LIVE,
    "resources/nightly.job.yml": NIGHTLY,
}
SHORT_TIMEOUTS = Timeouts(drain=0.2, start=20, watch=0)


def without_waiting(command: str) -> tuple[str, ...]:
    """Return the options with which a command neither watches new runs nor requires that runs have worked for long."""
    options = {"deploy": (), "rollback": (), "promote": ("--stable-for", "0")}
    return ("--watch", "0", "--idle", "0", *options[command]) if command in options else ()


def write_heartbeats(workspace: Path, run: Run) -> None:
    """Write the heartbeats of a simulated run, as if each of its steps had committed a batch."""
    for call in find_task_calls(Job("", run.settings, KeyLocations(""))):
        pipeline, environment = (call.parameter(name) for name in ("pipeline", "env"))
        if pipeline is None or environment is None or "libraries" not in call.task:
            continue
        (wheel,) = [library["whl"] for library in call.task["libraries"] if "whl" in library]
        person = "_alice" if environment.value == "dev" else ""
        volume = workspace / "Volumes" / environment.value / "tiny" / f"checkpoints{person}"
        file = volume / pipeline.value / "land" / "heartbeat.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        release = wheel.split("/releases/")[1].split("/")[0]
        beat = Heartbeat(pipeline.value, "land", release, f"run {run.run_id}", now(), now(), batch=0, rows=7)
        file.write_text(beat.to_json())


def serve_tiny(directory: Path) -> LocalWorkspace:
    """Return a workspace that executes no tasks, and writes the heartbeats of the runs of tiny bundles."""
    simulate = partial(write_heartbeats, directory)
    return LocalWorkspace(directory, execute=False, restart_delay=0.01, simulate=simulate)


def write_tiny(root: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """Write and commit the bundle; `changes` replaces files, or removes those whose content is None."""
    for name, content in {**FILES, **(changes or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(content)
    commit(root)
    return root


def with_keys(release: Release, key: str) -> Release:
    """Return the release with the signature of a deduplication by this key for step `land` of pipeline p."""
    signature = Signature(
        sources=(Input("rows", "source", "source ticks"),),
        static_inputs=(),
        stateful=(Operator("deduplicate", (Column(key, "string", f"rows.{key}"),)),),
        watermarks=(),
        filters=(),
        joins=(),
        others=(),
        output=(),
        output_mode="append",
        sinks=({"kind": "table", "name": "landed", "mode": "append"},),
        time_zone="UTC",
        ansi=True,
        spark="4.2.0",
        python="3.12",
    )
    signatures = {"environments": {"staging": {"p": {"land": {"signature": signature.to_json()}}}}}
    return replace(release, manifest=replace(release.manifest, signatures=signatures))


def commit(root: Path) -> None:
    """Commit all files in a repository at `root`, which is created if it does not exist."""
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all files", "--allow-empty"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)


@dataclass
class TinyBundle:
    """The bundle in one directory, and the lines that its deployments have reported."""

    root: Path
    reported: list[str] = field(default_factory=list)

    def change(self, **files: str | None) -> Release:
        """Return a new release with these files, or with one more line of code."""
        code = self.root / "src" / "tiny" / "__init__.py"
        write_tiny(self.root, files or {"src/tiny/__init__.py": code.read_text() + "more = True\n"})
        return self.release()

    def release(self) -> Release:
        return releases.current(self.root)

    def target(self, environment: str = "staging") -> DeployTarget:
        return open_target(self.root, environment)

    def state(self, environment: str = "staging") -> State:
        return StateStore(self.target(environment)).read()

    def plan(self, release: Release | None = None, environment: str = "staging", adopt: Sequence[str] = ()) -> Plan:
        target = self.target(environment)
        return planner.plan(release or self.release(), target, StateStore(target).read(), adopt)

    def deploy(
        self, release: Release | None = None, environment: str = "staging", adopt: Sequence[str] = (), **options: Any
    ) -> State:
        """Deploy the release, as `headrace deploy --yes` does."""
        release = release or self.release()
        target = self.target(environment)
        plan = planner.plan(release, target, StateStore(target).read(), adopt)
        defaults: dict[str, Any] = {"command": "deploy", "timeouts": SHORT_TIMEOUTS}
        return apply(plan, release, target, ApplyOptions(**{**defaults, **options}), self.reported.append)
