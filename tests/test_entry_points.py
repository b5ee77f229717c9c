"""Test the functions that a job calls: from the installed wheel, and directly."""

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
# As a platform calls them: by their name in the metadata of the wheel. SystemExit counts as a failure.
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
    """A Python with the installed wheel and the packages of a platform (Spark, libraries), without our sources."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    (site,) = (directory / "venv").glob("lib/python*/site-packages")
    (site / "platform.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def call(python: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE", "PYTHONPATH"))}
    command = [str(python), "-c", CALL, name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")


@pytest.mark.full
def test_wheel_runs_layer_by_layer(python: Path, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=300, customers=20, files=3, pace=10)
    arguments = ("--pipeline", "orders", "--env", "local", "--conf", str(bundle / "conf"))
    for name in ("bronze", "silver", "gold"):
        process = call(python, name, *arguments)
        assert process.returncode == 0, process.stderr
        assert f"{name}_" in process.stdout
        assert str(python.parents[1]) in process.stdout.splitlines()[-1]
    rows = Counter()
    for table in ("bronze_orders", "silver_orders", "gold_revenue"):
        rows[table] = DeltaTable(str(bundle / ".headrace" / "tables" / table)).to_pyarrow_table().num_rows
    assert rows["bronze_orders"] == rows["silver_orders"] > 250
    assert rows["gold_revenue"] > 0

    local = bundle / "conf" / "local.yml"
    text = local.read_text().replace("path: data/orders", 'path: "${orders}"')
    local.write_text(text + "values: {orders: {required: true}}\n")
    failed = call(python, "run", *arguments)
    assert (failed.returncode, "value 'orders'" in failed.stderr) == (1, True), failed.stderr
    process = call(python, "run", *arguments, "--step", "bronze_orders", "--value", "orders=data/orders")
    assert process.returncode == 0, process.stderr
    assert "gold_" not in process.stdout


def test_metadata_has_the_entry_points_and_one_command() -> None:
    assert {point.name for point in entry_points(group=GROUP)} == {"run", "bronze", "silver", "gold", "reset"}
    commands = {point.name for point in entry_points(group="console_scripts") if point.value.startswith("headrace")}
    assert commands == {"headrace"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pipeline", "orders"], "--env"),
        (["--pipeline", "orders", "--env", "local", "--value", "user"], "'user' is not of the form name=value"),
    ],
)
def test_wrong_parameters_raise_instead_of_exiting(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    with pytest.raises(ConfigurationError, match=message):
        jobs.run()


def test_wheel_without_extras_does_not_require_spark() -> None:
    requirements = [Requirement(line) for line in requires("headrace") or ()]
    without_extras = {item.name for item in requirements if item.marker is None or item.marker.evaluate({"extra": ""})}
    assert without_extras == {"click", "pydantic", "pyyaml", "rich"}
    local = {item.name for item in requirements if item.marker is None or item.marker.evaluate({"extra": "local"})}
    assert local >= {"pyspark", "delta-spark"}


def test_layer_without_steps_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle")
    pipeline = bundle / "conf" / "pipelines" / "ticks.yml"
    (bundle / "conf" / "local.yml").open("a").write("  ticks: {kind: rate}\n")
    pipeline.write_text("steps:\n  land: {layer: bronze, reads: {t: {source: ticks}}, writes: {table: ticks}}\n")
    monkeypatch.setattr(sys, "argv", ["gold", "--pipeline", "ticks", "--env", "local", "--conf", str(bundle)])
    with pytest.raises(ConfigurationError, match="has no gold step"):
        jobs.gold()


def test_missing_function_is_reported_before_spark_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle")
    pipeline = bundle / "conf" / "pipelines" / "orders.yml"
    pipeline.write_text(pipeline.read_text().replace("headrace_shop.orders:revenue", "headrace_shop.orders:revenues"))
    monkeypatch.setattr(sys, "argv", ["gold", "--pipeline", "orders", "--env", "local", "--conf", str(bundle)])
    with pytest.raises(ConfigurationError, match=r"orders\.yml:\d+\n  fix: did you mean 'revenue'\?"):
        jobs.gold()
    assert not (bundle / ".headrace").exists()
