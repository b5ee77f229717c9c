"""dev -> staging -> prod: the orders pipeline in three workspaces, from the same bytes; a change, and back again."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from deployments import commit
from headrace.cli import main
from headrace.deploy.deploy_target import open_target
from headrace.deploy.remote import Run
from headrace.deploy.state_store import StateStore
from headrace.testing.workspace import LocalWorkspace
from headrace_shop.arrivals import CLEAN
from headrace_shop.sample import make_sample
from processes import copy_tree, wait_until

NAMES = ("dev", "staging", "prod")
ENVIRONMENT = """\
engine: {{kind: databricks}}
tables: {{catalog: {name}, schema: "shop{person}"}}
checkpoints: /Volumes/{name}/shop/checkpoints{person}
trigger: {{every: 1 second}}
sources:
  orders: {{kind: files, format: json, path: /Volumes/{name}/shop/data/orders}}
  customers: {{kind: files, format: csv, path: /Volumes/{name}/shop/data/customers, options: {{header: true}}}}
values: {{user: {user}}}
"""
DATABRICKS = """\
bundle: {{name: shop}}
include: [resources/*.yml]
variables:
  spark_version: {{default: 17.3.x-scala2.13}}
  node_type: {{default: i3.xlarge}}
  workers: {{default: 1}}
  user: {{default: everybody}}
targets:
  dev:
    mode: development
    workspace: {{host: "{dev}", profile: dev}}
    variables: {{user: "${{workspace.current_user.short_name}}"}}
  staging:
    workspace: {{host: "{staging}", profile: staging, root_path: /Workspace/Shared/shop}}
  prod:
    mode: production
    workspace: {{host: "{prod}", profile: prod, root_path: /Workspace/Shared/shop}}
    run_as: {{service_principal_name: 11111111-2222-3333-4444-555555555555}}
"""


@dataclass
class Company:
    """A bundle, its data, and the three workspaces that it goes to."""

    bundle: Path
    data: Path
    workspaces: dict[str, LocalWorkspace]

    def headrace(self, *arguments: str) -> Result:
        done = CliRunner().invoke(main, [*arguments, "-C", str(self.bundle)])
        assert done.exit_code == 0, done.output
        return done

    def arrive(self, name: str, *numbers: int) -> None:
        """Order files come in, and the customers with the first of them."""
        place = self.workspaces[name].directory / "Volumes" / name / "shop" / "data"
        files = sorted((self.data / "orders").iterdir())
        for source in [files[number] for number in numbers]:
            (place / "orders").mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place / "orders" / f".{source.name}")
            (place / "orders" / f".{source.name}").rename(place / "orders" / source.name)
        if not (place / "customers").exists():
            shutil.copytree(self.data / "customers", place / "customers")

    def ids(self, name: str, table: str) -> list[str]:
        """The orders that a table has."""
        schema = "shop_alice" if name == "dev" else "shop"
        place = str(self.workspaces[name].directory / "tables" / name / schema / table)
        if not DeltaTable.is_deltatable(place):
            return []
        return sorted(DeltaTable(place).to_pyarrow_table(columns=["order_id"])["order_id"].to_pylist())

    def runs(self, name: str) -> list[Run]:
        place = open_target(self.bundle, name)
        return place.remote.runs(StateStore(place).read().jobs["orders"].id)

    def release(self, name: str) -> str:
        return StateStore(open_target(self.bundle, name)).read().release

    def laid_down(self, name: str) -> dict[str, str]:
        """path -> sha256 of the release that is in use."""
        place = open_target(self.bundle, name)
        directory = self.workspaces[name].directory / place.release(self.release(name))[1:]
        return {
            file.relative_to(directory).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in directory.rglob("*")
            if file.is_file()
        }


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Company]:
    bundle = copy_tree(tmp_path / "bundle")
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    make_sample(tmp_path / "data", orders=300, customers=20, files=6, pace=10, mix=CLEAN)
    with ExitStack() as stack:
        workspaces = {name: stack.enter_context(LocalWorkspace(tmp_path / name, restart_delay=0.1)) for name in NAMES}
        hosts = {name: workspace.url for name, workspace in workspaces.items()}
        tokens = {name: workspace.token_for("alice") for name, workspace in workspaces.items()}
        profiles = (f"[{name}]\nhost = {hosts[name]}\ntoken = {tokens[name]}\n" for name in NAMES)
        (tmp_path / "databrickscfg").write_text("".join(profiles))
        monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "databrickscfg"))
        (bundle / "databricks.yml").write_text(DATABRICKS.format(**hosts))
        for name in NAMES:
            person, user = ("_${user}", "{required: true}") if name == "dev" else ("", "everybody")
            text = ENVIRONMENT.format(name=name, person=person, user=user)
            (bundle / "conf" / f"{name}.yml").write_text(text)
        (bundle / ".gitignore").write_text("dist/\n__pycache__/\n")
        commit(bundle)
        yield Company(bundle, tmp_path / "data", workspaces)


def test_a_release_goes_from_dev_to_prod_and_changes_on_running_streams(company: Company) -> None:
    company.arrive("dev", 0, 1)
    company.headrace("deploy", "--env", "dev", "--yes")
    assert company.runs("dev") == []  # jobs for development wait until they are asked for
    company.headrace("start", "orders", "--env", "dev")
    wait_until(lambda: len(company.ids("dev", "silver_orders")) == 100, "the rows in dev's silver table")
    company.headrace("stop", "orders", "--env", "dev")
    assert [run.result for run in company.runs("dev")] == ["SUCCESS"]  # it was asked, and not cancelled

    company.arrive("staging", 0, 1)
    company.headrace("deploy", "--env", "staging", "--yes")
    wait_until(lambda: len(company.ids("staging", "silver_orders")) == 100, "the rows in staging's silver table")

    company.arrive("prod", 0, 1)
    company.headrace("promote", "--from", "staging", "--to", "prod", "--yes")
    assert company.laid_down("prod") == company.laid_down("staging")
    wait_until(lambda: len(company.ids("prod", "silver_orders")) == 100, "the rows in prod's silver table")
    assert company.ids("prod", "silver_orders") == company.ids("staging", "silver_orders")
    company.headrace("stop", "orders", "--env", "prod")

    first = company.release("staging")
    code = company.bundle / "src" / "headrace_shop" / "orders.py"
    code.write_text(code.read_text() + '\nprint("changed code")\n')
    company.headrace("deploy", "--env", "staging", "--yes")
    second = company.release("staging")
    assert second != first
    last, before = company.runs("staging")
    assert (before.result, last.phase, last.uses(second)) == ("SUCCESS", "RUNNING", True)
    company.arrive("staging", 2, 3)
    wait_until(lambda: len(company.ids("staging", "silver_orders")) == 200, "rows by the changed code")
    assert "changed code" in company.headrace("logs", "orders", "--env", "staging").output

    company.headrace("rollback", "--env", "staging", "--yes")
    assert company.release("staging") == first
    assert company.runs("staging")[0].uses(first)
    company.arrive("staging", 4, 5)
    wait_until(lambda: len(company.ids("staging", "silver_orders")) == 300, "rows by the code of before")
    company.headrace("stop", "orders", "--env", "staging")
    assert {run.result for run in company.runs("staging")} == {"SUCCESS"}
    for table in ("bronze_orders", "silver_orders"):
        assert len(company.ids("staging", table)) == len(set(company.ids("staging", table))) == 300, table
    assert [line.split()[2] for line in company.headrace("history", "--env", "staging").output.splitlines()[1:]] == [
        "rollback",
        "deploy",
        "deploy",
    ]
