"""A small bundle with three environments, and deploying it: to a workspace on loopback, as the command line does."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.deploy import planner
from headrace.deploy.apply import Order, apply
from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import Place, open_place
from headrace.deploy.drain import Limits
from headrace.deploy.plan import Plan
from headrace.deploy.state_store import Ledger
from headrace.release import releases
from headrace.release.releases import Release

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
    "{job_cluster_key: main, new_cluster: {spark_version: 17.3.x-scala2.13, node_type_id: i3.xlarge, num_workers: 1, "
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
PROMPT = Limits(drain=0.2, start=20)


def write_tiny(root: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """The bundle, committed; files that are given replace its own, None takes one away."""
    for name, content in {**FILES, **(changes or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(content)
    commit(root)
    return root


def commit(root: Path) -> None:
    """All that is there, in a repository of its own."""
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it is", "--allow-empty"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)


@dataclass
class Tiny:
    """The bundle at one place, with the lines that its deployments have said."""

    root: Path
    said: list[str] = field(default_factory=list)

    def change(self, **files: str | None) -> Release:
        """Another release: with one more line of code, or these files."""
        code = self.root / "src" / "tiny" / "__init__.py"
        write_tiny(self.root, files or {"src/tiny/__init__.py": code.read_text() + "more = True\n"})
        return self.release()

    def release(self) -> Release:
        return releases.current(self.root)

    def place(self, environment: str = "staging") -> Place:
        return open_place(self.root, environment)

    def state(self, environment: str = "staging") -> State:
        return Ledger(self.place(environment)).read()

    def plan(self, wanted: Release | None = None, environment: str = "staging") -> Plan:
        place = self.place(environment)
        return planner.plan(wanted or self.release(), place, Ledger(place).read())

    def deploy(self, wanted: Release | None = None, environment: str = "staging", **order: Any) -> State:
        """As `headrace deploy --yes` does."""
        wanted = wanted or self.release()
        place = self.place(environment)
        made = planner.plan(wanted, place, Ledger(place).read())
        given = {"what": "deploy", "limits": PROMPT, **order}
        return apply(made, wanted, place, Order(**given), self.said.append)
