"""Test `headrace run`, `show`, `status` and `stop` with real runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from headrace.cli import main
from headrace.runtime.events import read_events
from processes import copy_bundle, headrace, wait_until


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def bundle(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference bundle after a run of one step and a run of all steps."""
    root = copy_bundle(tmp_path_factory.mktemp("shop"), orders=1_000, customers=50, files=5, pace=20)
    one_step = invoke("run", "orders", "--step", "customers", "-C", str(root))
    assert one_step.exit_code == 0, one_step.output
    (root / "one_step.txt").write_text(one_step.output)
    all_steps = invoke("run", "orders", "-C", str(root))
    assert all_steps.exit_code == 0, all_steps.output
    (root / "all_steps.txt").write_text(all_steps.output)
    return root


def test_run_prints_batches_and_totals(bundle: Path) -> None:
    lines = (bundle / "all_steps.txt").read_text().splitlines()
    assert any(line.startswith("bronze_orders  batch 0  1,000 rows  ") for line in lines), lines
    assert any(line.startswith("  bronze_orders: 1000 rows in,") and "duplicates" in line for line in lines), lines


def test_second_run_has_no_new_input(bundle: Path) -> None:
    second = invoke("run", "orders", "-C", str(bundle))
    assert second.exit_code == 0
    assert "no new input" in second.output


def test_single_step_can_run(bundle: Path) -> None:
    output = (bundle / "one_step.txt").read_text()
    assert "customers  batch 0  " in output
    assert "bronze_orders" not in output  # although it has unread input


@pytest.mark.parametrize(
    ("arguments", "case"),
    [
        (("run", "orders", "--step", "gold_revenu"), "unknown_step"),
        (("run", "order"), "unknown_pipeline"),
        (("show", "gold_revenu"), "unknown_table"),
        (("status", "order"), "status_unknown_pipeline"),
    ],
)
def test_similar_name_is_suggested(bundle, arguments, case, golden) -> None:
    failed = invoke(*arguments, "-C", str(bundle))
    assert failed.exit_code == 1
    golden(f"cli/{case}", failed.output.replace(str(bundle), "BUNDLE"))


def test_missing_function_is_reported_before_spark_starts(tmp_path: Path) -> None:
    root = copy_bundle(tmp_path / "shop")
    pipeline = root / "conf" / "pipelines" / "orders.yml"
    pipeline.write_text(pipeline.read_text().replace("headrace_shop.orders:revenue", "headrace_shop.orders:revenues"))
    failed = invoke("run", "orders", "-C", str(root))
    assert failed.exit_code == 1
    assert "orders.yml:" in failed.stderr and "did you mean 'revenue'?" in failed.stderr
    assert "starting Spark" not in failed.stderr


def test_stop_means_the_local_run_if_the_environment_has_no_target(tmp_path: Path) -> None:
    root = copy_bundle(tmp_path / "shop")
    (root / "conf" / "laptop.yml").write_text((root / "conf" / "local.yml").read_text())
    (root / "databricks.yml").unlink()
    shutil.rmtree(root / "resources")
    failed = invoke("stop", "orders", "--env", "laptop", "-C", str(root))
    assert failed.exit_code == 1
    assert "pipeline 'orders' is not running in environment 'laptop': never run" in failed.stderr


def test_follow_and_once_exclude_each_other(bundle: Path) -> None:
    assert invoke("run", "orders", "--follow", "--once", "-C", str(bundle)).exit_code == 2


def test_show_prints_rows_size_and_open_windows(bundle: Path) -> None:
    result = invoke("show", "gold_revenue", "--limit", "3", "-o", "json", "-C", str(bundle))
    facts = json.loads(result.output)
    assert result.exit_code == 0
    assert len(facts["rows"]) == 3
    assert set(facts["rows"][0]) == {"window_start", "window_end", "country", "orders", "revenue"}
    assert facts["count"] > 3
    assert facts["open_windows"] > 0
    assert f"{facts['open_windows']} open windows" in invoke("show", "gold_revenue", "-C", str(bundle)).output


def test_show_quarantine_prints_reasons(bundle: Path) -> None:
    result = invoke("show", "bronze_orders", "--quarantine", "-o", "json", "-C", str(bundle))
    facts = json.loads(result.output)
    assert facts["table"] == "bronze_orders_quarantine"
    assert facts["count"] > 0
    assert all(row["reasons"] for row in facts["rows"])


def test_quarantine_is_empty_without_quarantined_rows(bundle: Path) -> None:
    result = invoke("show", "customers", "--quarantine", "-o", "json", "-C", str(bundle))
    assert (result.exit_code, json.loads(result.output)["count"]) == (0, 0)


def test_status_reads_recorded_events(bundle: Path) -> None:
    facts = json.loads(invoke("status", "orders", "-o", "json", "-C", str(bundle)).output)
    bronze = next(step for step in facts["steps"] if step["step"] == "bronze_orders")
    assert bronze["rows"] == 1_000
    assert bronze["quarantined"]
    assert facts["run"].startswith("run ended")
    assert "bronze_orders: " in invoke("status", "orders", "-C", str(bundle)).output


def test_failed_step_is_reported_with_its_cause_and_exit_code_1(bundle: Path) -> None:
    pipeline = bundle / "conf" / "pipelines" / "broken.yml"
    pipeline.write_text(
        """
steps:
  broken:
    layer: bronze
    reads:
      orders:
        source: orders
        schema: headrace_shop.orders:ORDER
        expect: [{between: {quantity: [1, 1000]}, on_fail: stop}]
    writes: {table: broken}
"""
    )
    try:
        failed = invoke("run", "broken", "-C", str(bundle))
        state = json.loads(invoke("status", "broken", "-o", "json", "-C", str(bundle)).output)
    finally:
        pipeline.unlink()
    assert failed.exit_code == 1
    assert "Error: step 'broken' failed: " in failed.output
    assert "between quantity 1 and 1000 failed, and its on_fail is stop: " in failed.output
    assert "Traceback" not in failed.output
    assert state["run"].startswith("run failed")


def test_failed_step_stops_the_other_steps_between_batches_and_names_the_log(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=200, customers=20, files=2, pace=10)
    (bundle / "conf" / "pipelines" / "broken.yml").write_text(
        """
steps:
  land:
    layer: bronze
    reads: {orders: {source: orders, schema: "order_id STRING, quantity INT"}}
    writes: {table: landed}
  broken:
    layer: silver
    reads: {orders: {table: landed}}
    expect: [{between: {quantity: [0, 0]}, on_fail: stop}]
    writes: {table: broken}
"""
    )
    local = bundle / "conf" / "local.yml"
    local.write_text(local.read_text().replace("available_now", "{every: 100 milliseconds}"))
    with headrace("run", "broken", bundle=bundle) as process:
        assert process.wait(timeout=120) == 1
    output = (bundle / "output.txt").read_text()
    assert "Error: step 'broken' failed: between quantity 0 and 0 failed" in output
    (log,) = re.findall(r"Details: (\S+)", output)
    assert "between quantity 0 and 0 failed" in Path(log).read_text()
    spark = bundle / ".headrace" / "checkpoints" / "broken" / "land" / "1" / "spark"
    offsets, commits = ({file.name for file in (spark / kind).glob("[0-9]*")} for kind in ("offsets", "commits"))
    assert offsets == commits != set()


def test_check_deep_checks_with_spark_and_writes_nothing(bundle: Path) -> None:
    def all_files() -> list[str]:
        return sorted(str(path) for path in bundle.rglob("*") if "logs" not in path.parts)

    before = all_files()
    deep = invoke("check", "--deep", "--env", "local", "-C", str(bundle))
    assert (deep.exit_code, all_files()) == (0, before), deep.output
    local = bundle / "conf" / "local.yml"
    text = local.read_text()
    local.write_text(text.replace("data/orders", "data/nowhere"))
    try:
        failed = invoke("check", "--deep", "--env", "local", "-C", str(bundle))
    finally:
        local.write_text(text)
    assert failed.exit_code == 1
    assert "source 'orders' cannot be opened" in failed.output


def wait_for_gold(bundle: Path) -> None:
    def has_batch() -> bool:
        events = read_events(bundle / ".headrace" / "local", "orders")
        return any(event.what == "batch" and event.step == "gold_revenue" for event in events)

    wait_until(has_batch, f"a batch of gold; see {bundle / 'output.txt'}")


@pytest.mark.parametrize(
    "how",
    [
        "headrace stop",
        pytest.param("SIGINT", marks=pytest.mark.full),
        pytest.param("SIGTERM to all", marks=pytest.mark.full),
    ],
)
def test_following_run_stops_between_batches(tmp_path: Path, how: str) -> None:
    bundle = copy_bundle(tmp_path / "a bundle", orders=200, customers=20, files=2, pace=10)
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_for_gold(bundle)
        if how == "headrace stop":
            stop = invoke("stop", "orders", "-C", str(bundle))
            assert (stop.exit_code, "pipeline orders: run stopped at" in stop.output) == (0, True), stop.output
        elif how == "SIGTERM to all":  # as a service manager sends it
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    output = (bundle / "output.txt").read_text()
    assert "Error" not in output
    assert "done in" in output
    last = list(read_events(bundle / ".headrace" / "local", "orders"))[-1]
    assert last.what == "run stopped"
    assert not list((bundle / ".headrace" / "local" / "events").glob("*.alive"))
    if how == "headrace stop":
        assert "is not running in environment 'local'" in invoke("stop", "orders", "-C", str(bundle)).output


def test_stop_request_during_the_start_of_spark_is_honoured(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=200, customers=20, files=2, pace=10)
    events = bundle / ".headrace" / "local"
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_until(lambda: any(read_events(events, "orders")), "the run to be announced")
        stopped = invoke("stop", "orders", "-C", str(bundle))
        assert (stopped.exit_code, "pipeline orders: run stopped at" in stopped.output) == (0, True), stopped.output
        assert process.wait(timeout=60) == 0
    assert [event.what for event in read_events(events, "orders")] == ["run started", "run stopped"]


@pytest.mark.full
def test_death_of_the_jvm_is_reported_and_loses_no_rows(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=200, customers=20, files=2, pace=10)
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_for_gold(bundle)
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
        os.kill(int(children.stdout), signal.SIGKILL)  # as the kernel does when memory runs out
        assert process.wait(timeout=60) == 1
    output = (bundle / "output.txt").read_text()
    assert "Error: Spark's JVM has died\n  at   " in output
    assert "Traceback" not in output
    assert list(read_events(bundle / ".headrace" / "local", "orders"))[-1].what == "run failed"


def test_unusable_path_is_reported_with_a_fix(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "shop")
    (bundle / ".headrace").write_text("a file")
    failed = invoke("run", "orders", "-C", str(bundle))
    assert failed.exit_code == 1
    assert f"at   {bundle}/.headrace" in failed.stderr
    assert "fix: check its owner, its permissions" in failed.stderr
