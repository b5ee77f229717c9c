"""The orders pipeline in three workspaces: deploy to dev and staging, promote to prod, change and roll back staging."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from deployments import commit, without_waiting
from headrace.cli import main
from headrace.deploy.deploy_target import open_target
from headrace.deploy.remote import Run
from headrace.deploy.state_store import StateStore
from headrace.testing.workspace import LocalWorkspace
from headrace_shop.arrivals import CLEAN
from headrace_shop.sample import make_sample
from processes import copy_tree, wait_until

NAMES = ("dev", "staging", "prod")
RESET = ("reset", "orders", "--env", "prod")
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
  spark_version: {{default: 18.x-scala2.13}}
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
class Workspaces:
    """A bundle, its sample data, and the three workspaces that it is deployed to."""

    bundle: Path
    data: Path
    local_workspaces: dict[str, LocalWorkspace]

    def headrace(self, *arguments: str) -> Result:
        result = CliRunner().invoke(main, [*arguments, *without_waiting(arguments[0]), "-C", str(self.bundle)])
        assert result.exit_code == 0, result.output
        return result

    def add_data(self, name: str, *indexes: int) -> None:
        """Add order files to an environment's source, and the customers if they are missing."""
        directory = self.local_workspaces[name].directory / "Volumes" / name / "shop" / "data"
        files = sorted((self.data / "orders").iterdir())
        for source in [files[index] for index in indexes]:
            (directory / "orders").mkdir(parents=True, exist_ok=True)
            shutil.copy(source, directory / "orders" / f".{source.name}")
            (directory / "orders" / f".{source.name}").rename(directory / "orders" / source.name)
        if not (directory / "customers").exists():
            shutil.copytree(self.data / "customers", directory / "customers")

    def order_ids(self, name: str, table: str) -> list[str]:
        """Return the ids of the orders in a table; none if it does not exist."""
        schema = "shop_alice" if name == "dev" else "shop"
        path = str(self.local_workspaces[name].directory / "tables" / name / schema / table)
        if not DeltaTable.is_deltatable(path):
            return []
        return sorted(DeltaTable(path).to_pyarrow_table(columns=["order_id"])["order_id"].to_pylist())

    def wait_for_orders(self, name: str, count: int) -> None:
        condition = f"{count} orders in the silver table of {name}"
        wait_until(lambda: len(self.order_ids(name, "silver_orders")) == count, condition)

    def runs(self, name: str) -> list[Run]:
        target = open_target(self.bundle, name)
        return target.remote.list_runs(StateStore(target).read().jobs["orders"].id)

    def release(self, name: str) -> str:
        return StateStore(open_target(self.bundle, name)).read().release

    def release_hashes(self, name: str) -> dict[str, str]:
        """Return the sha256 of each file of the deployed release."""
        target = open_target(self.bundle, name)
        directory = self.local_workspaces[name].directory / target.release_path(self.release(name))[1:]
        return {
            file.relative_to(directory).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in directory.rglob("*")
            if file.is_file()
        }


@pytest.fixture
def workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspaces]:
    bundle = copy_tree(tmp_path / "bundle")
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    make_sample(tmp_path / "data", orders=750, customers=20, files=15, pace=10, mix=CLEAN)
    with ExitStack() as stack:
        local_workspaces = {
            name: stack.enter_context(LocalWorkspace(tmp_path / name, restart_delay=0.1)) for name in NAMES
        }
        hosts = {name: workspace.url for name, workspace in local_workspaces.items()}
        tokens = {name: workspace.token_for("alice") for name, workspace in local_workspaces.items()}
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
        yield Workspaces(bundle, tmp_path / "data", local_workspaces)


@pytest.mark.full
def test_release_is_deployed_promoted_changed_and_rolled_back_with_running_streams(workspaces: Workspaces) -> None:
    workspaces.add_data("dev", 0, 1)
    workspaces.headrace("deploy", "--env", "dev", "--yes")
    assert workspaces.runs("dev") == []  # development jobs are paused until `headrace start`
    workspaces.headrace("start", "orders", "--env", "dev")
    workspaces.wait_for_orders("dev", 100)
    workspaces.headrace("stop", "orders", "--env", "dev")
    assert [run.result for run in workspaces.runs("dev")] == ["SUCCESS"]  # not CANCELED: it stopped by itself

    workspaces.add_data("staging", 0, 1)
    workspaces.headrace("deploy", "--env", "staging", "--yes")
    workspaces.wait_for_orders("staging", 100)

    workspaces.add_data("prod", 0, 1)
    workspaces.headrace("promote", "--from", "staging", "--to", "prod", "--yes")
    assert workspaces.release_hashes("prod") == workspaces.release_hashes("staging")
    workspaces.wait_for_orders("prod", 100)
    assert workspaces.order_ids("prod", "silver_orders") == workspaces.order_ids("staging", "silver_orders")
    workspaces.headrace("stop", "orders", "--env", "prod")

    refused = CliRunner().invoke(main, [*RESET, "--table", "keep", "--yes", "-C", str(workspaces.bundle)])
    assert refused.exit_code == 1
    assert "would append rows to table 'gold_revenue' a second time" in refused.output
    assert "gold_revenue: checkpoint generation 1 → 2" in workspaces.headrace(*RESET, "--yes").output
    assert "gold_revenue: continues with checkpoint generation 1" in workspaces.headrace(*RESET, "--undo").output
    assert "Start it with: headrace start orders --env prod" in workspaces.headrace(*RESET, "--yes").output
    workspaces.headrace("start", "orders", "--env", "prod")
    workspaces.add_data("prod", 2)
    workspaces.wait_for_orders("prod", 150)
    workspaces.headrace("stop", "orders", "--env", "prod")
    silver = workspaces.local_workspaces["prod"].directory / "Volumes/prod/shop/checkpoints/orders/silver_orders"
    assert (silver / "3" / "spark" / "commits" / "0").exists(), "all orders were read again"
    assert len(set(workspaces.order_ids("prod", "silver_orders"))) == 150

    first = workspaces.release("staging")
    code = workspaces.bundle / "src" / "headrace_shop" / "orders.py"
    code.write_text(code.read_text() + '\nprint("changed code")\n')
    workspaces.headrace("deploy", "--env", "staging", "--yes")
    second = workspaces.release("staging")
    assert second != first
    last, before = workspaces.runs("staging")
    assert (before.result, last.phase, last.uses(second)) == ("SUCCESS", "RUNNING", True)
    workspaces.add_data("staging", 2, 3)
    workspaces.wait_for_orders("staging", 200)
    assert "changed code" in workspaces.headrace("logs", "orders", "--env", "staging").output

    workspaces.headrace("rollback", "--env", "staging", "--yes")
    assert workspaces.release("staging") == first
    assert workspaces.runs("staging")[0].uses(first)
    workspaces.add_data("staging", 4, 5)
    workspaces.wait_for_orders("staging", 300)
    workspaces.headrace("stop", "orders", "--env", "staging")
    assert {run.result for run in workspaces.runs("staging")} == {"SUCCESS"}
    for table in ("bronze_orders", "silver_orders"):
        ids = workspaces.order_ids("staging", table)
        assert len(ids) == len(set(ids)) == 300, table
    history = workspaces.headrace("history", "--env", "staging").output.splitlines()[1:]
    assert [line.split()[2] for line in history] == ["rollback", "deploy", "deploy"]


# The code with which each broken release replaces the rule for order amounts, and its error.
BROKEN = {
    "import": "raise ImportError('no such module')",
    "first batch": "return F.raise_error(F.lit('broken at once')).isNull()",
    "tenth batch": "return F.when(F.col('order_id') == POISON, F.raise_error(F.lit('broken at last'))).otherwise(True)",
    "no batch": "return F.expr(\"isnull(java_method('java.lang.Thread', 'sleep', 600000L))\")",
}
RULE = 'return F.col("amount") == F.col("quantity") * F.col("unit_price")'


@pytest.mark.full
def test_broken_releases_are_stopped_at_staging(workspaces: Workspaces) -> None:
    workspaces.add_data("staging", 0)
    workspaces.headrace("deploy", "--env", "staging", "--yes")
    workspaces.wait_for_orders("staging", 50)
    first = workspaces.release("staging")
    code = workspaces.bundle / "src" / "headrace_shop" / "orders.py"
    original = code.read_text()
    poison = json.loads(sorted((workspaces.data / "orders").iterdir())[11].read_text().splitlines()[0])["order_id"]

    def deploy_broken(change: str, *options: str, feed: Callable[[], None] = lambda: None) -> str:
        """Deploy a broken release, feed its run, and return the output. Check that the first release is back."""
        code.write_text(change)
        commit(workspaces.bundle)

        def feed_new_run() -> None:
            wait_until(lambda: not workspaces.runs("staging")[0].uses(first), "a run of the broken release")
            feed()

        feeding = threading.Thread(target=feed_new_run)
        feeding.start()
        arguments = ["deploy", "--env", "staging", "--yes", "--idle", "0", *options, "-C", str(workspaces.bundle)]
        result = CliRunner().invoke(main, arguments)
        feeding.join()
        assert result.exit_code == 1, result.output
        assert f"it was restored to release {first}" in result.output
        assert workspaces.release("staging") == first
        wait_until(lambda: workspaces.runs("staging")[0].phase == "RUNNING", "a run")
        assert workspaces.runs("staging")[0].uses(first)
        return result.output

    def add_one_by_one() -> None:
        for number in range(2, 11):
            workspaces.add_data("staging", number)
            workspaces.wait_for_orders("staging", 50 * (number + 1))
        workspaces.add_data("staging", 11)

    broken = {name: original.replace(RULE, text.replace("POISON", repr(poison))) for name, text in BROKEN.items()}
    broken["import"] = original.replace("MONEY = ", f"{BROKEN['import']}\nMONEY = ")
    output = deploy_broken(broken["import"], "--watch", "60")
    assert "importing 'headrace_shop.orders' failed: ImportError: no such module" in output, output
    output = deploy_broken(broken["first batch"], "--watch", "60", feed=lambda: workspaces.add_data("staging", 1))
    assert "broken at once" in output, output
    workspaces.wait_for_orders("staging", 100)
    output = deploy_broken(broken["tenth batch"], "--watch", "170", feed=add_one_by_one)
    assert "job orders: works" in output
    assert "broken at last" in output, output
    workspaces.wait_for_orders("staging", 600)
    output = deploy_broken(broken["no batch"], "--within", "40", feed=lambda: workspaces.add_data("staging", 12))
    assert "it still waits for the first batch" in output
    workspaces.wait_for_orders("staging", 650)

    outcomes = [line.split()[2] for line in workspaces.headrace("history", "--env", "staging").output.splitlines()[1:]]
    assert outcomes == ["deploy"] * 5
    workspaces.add_data("prod", 0)
    workspaces.headrace("promote", "--from", "staging", "--to", "prod", "--yes")
    assert workspaces.release("prod") == first
    workspaces.headrace("stop", "orders", "--env", "prod")
    workspaces.headrace("stop", "orders", "--env", "staging")
    for table in ("bronze_orders", "silver_orders"):
        ids = workspaces.order_ids("staging", table)
        assert len(ids) == len(set(ids)) == 650, table
