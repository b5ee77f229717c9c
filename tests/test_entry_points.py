"""What a job calls: installed from the built wheel where nothing else of ours is, and as functions."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from importlib.metadata import entry_points, requires
from pathlib import Path

import pytest
from deltalake import DeltaTable
from packaging.requirements import Requirement

from headrace import entry_points as jobs
from headrace.errors import ConfigurationError
from processes import ROOT, copy_bundle

GROUP = "headrace.jobs"
# As a platform calls them: by name from the wheel's metadata, and an exit that is not a return is a failure.
CALL = """
import sys
from importlib.metadata import entry_points
name, *arguments = sys.argv[1:]
sys.argv = [name, *arguments]
try:
    entry_points(group="headrace.jobs")[name].load()()
except SystemExit as error:
    raise RuntimeError("a job must not exit") from error
import headrace
print("from", headrace.__file__)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel, and beside it only what a platform brings: Spark and libraries, not our sources."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "venv", with_pip=True)
    python = place / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    (site,) = (place / "venv").glob("lib/python*/site-packages")
    (site / "platform.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def call(python: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE", "PYTHONPATH"))}
    command = [str(python), "-c", CALL, name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")


def test_the_wheel_runs_layer_by_layer(python: Path, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=300, customers=20, files=3, pace=10)
    where = ("--pipeline", "orders", "--env", "local", "--conf", str(bundle / "conf"))
    for name in ("bronze", "silver", "gold"):
        done = call(python, name, *where)
        assert done.returncode == 0, done.stderr
        assert f"{name}_" in done.stdout
        assert str(python.parents[1]) in done.stdout.splitlines()[-1]
    rows = Counter()
    for table in ("bronze_orders", "silver_orders", "gold_revenue"):
        rows[table] = DeltaTable(str(bundle / ".headrace" / "tables" / table)).to_pyarrow_table().num_rows
    assert rows["bronze_orders"] == rows["silver_orders"] > 250
    assert rows["gold_revenue"] > 0

    local = bundle / "conf" / "local.yml"
    asked = local.read_text().replace("path: data/orders", 'path: "${orders}"')
    local.write_text(asked + "values: {orders: {required: true}}\n")
    refused = call(python, "run", *where)
    assert (refused.returncode, "value 'orders'" in refused.stderr) == (1, True), refused.stderr
    done = call(python, "run", *where, "--step", "bronze_orders", "--value", "orders=data/orders")
    assert done.returncode == 0, done.stderr
    assert "gold_" not in done.stdout


def test_the_metadata_names_the_jobs_and_no_global_run() -> None:
    assert {point.name for point in entry_points(group=GROUP)} == {"run", "bronze", "silver", "gold"}
    ours = {point.name for point in entry_points(group="console_scripts") if point.value.startswith("headrace")}
    assert ours == {"headrace"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pipeline", "orders"], "--env"),
        (["--pipeline", "orders", "--env", "local", "--value", "user"], "'user' is not of the form name=value"),
    ],
)
def test_wrong_parameters_raise_and_do_not_exit(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    with pytest.raises(ConfigurationError, match=said):
        jobs.run()


def test_the_wheel_without_extras_needs_no_spark() -> None:
    needed = [Requirement(line) for line in requires("headrace") or ()]
    without = {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})}
    assert without == {"click", "pydantic", "pyyaml", "rich"}
    local = {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": "local"})}
    assert local >= {"pyspark", "delta-spark"}


def test_a_layer_without_steps_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle")
    pipeline = bundle / "conf" / "pipelines" / "ticks.yml"
    (bundle / "conf" / "local.yml").open("a").write("  ticks: {kind: rate}\n")
    pipeline.write_text("steps:\n  land: {layer: bronze, reads: {t: {source: ticks}}, writes: {table: ticks}}\n")
    monkeypatch.setattr(sys, "argv", ["gold", "--pipeline", "ticks", "--env", "local", "--conf", str(bundle)])
    with pytest.raises(ConfigurationError, match="has no gold step"):
        jobs.gold()


def test_a_function_that_is_not_there_is_said_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = copy_bundle(tmp_path / "bundle")
    pipeline = bundle / "conf" / "pipelines" / "orders.yml"
    pipeline.write_text(pipeline.read_text().replace("headrace_shop.orders:revenue", "headrace_shop.orders:revenues"))
    monkeypatch.setattr(sys, "argv", ["gold", "--pipeline", "orders", "--env", "local", "--conf", str(bundle)])
    with pytest.raises(ConfigurationError, match=r"orders\.yml:\d+\n  fix: did you mean 'revenue'\?"):
        jobs.gold()
    assert not (bundle / ".headrace").exists()
