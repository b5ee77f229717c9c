"""`headrace run`, `show` and `status`, as typed."""

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
    """The reference bundle after a run of one step and then of all."""
    made = copy_bundle(tmp_path_factory.mktemp("shop"), orders=1_000, customers=50, files=5, pace=20)
    alone = invoke("run", "orders", "--step", "customers", "-C", str(made))
    assert alone.exit_code == 0, alone.output
    (made / "alone.txt").write_text(alone.output)
    ran = invoke("run", "orders", "-C", str(made))
    assert ran.exit_code == 0, ran.output
    (made / "first.txt").write_text(ran.output)
    return made


def test_a_run_tells_what_each_batch_did_and_a_sum(bundle: Path) -> None:
    lines = (bundle / "first.txt").read_text().splitlines()
    assert any(line.startswith("bronze_orders: batch 0, 1000 rows in") for line in lines), lines
    assert any(line.startswith("  bronze_orders: 1000 rows in,") and "duplicates" in line for line in lines), lines


def test_a_second_run_finds_nothing_new(bundle: Path) -> None:
    again = invoke("run", "orders", "-C", str(bundle))
    assert again.exit_code == 0
    assert "nothing new to read" in again.output


def test_one_step_can_run_alone(bundle: Path) -> None:
    alone = (bundle / "alone.txt").read_text()
    assert "customers: batch 0, " in alone
    assert "bronze_orders" not in alone  # although its rows are there


@pytest.mark.parametrize(
    ("arguments", "case"),
    [
        (("run", "orders", "--step", "gold_revenu"), "unknown_step"),
        (("run", "order"), "unknown_pipeline"),
        (("show", "gold_revenu"), "unknown_table"),
        (("status", "order"), "status_unknown_pipeline"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(bundle, arguments, case, golden) -> None:
    wrong = invoke(*arguments, "-C", str(bundle))
    assert wrong.exit_code == 1
    golden(f"cli/{case}", wrong.output.replace(str(bundle), "BUNDLE"))


def test_a_function_that_is_not_there_is_said_before_spark_starts(tmp_path: Path) -> None:
    made = copy_bundle(tmp_path / "shop")
    pipeline = made / "conf" / "pipelines" / "orders.yml"
    pipeline.write_text(pipeline.read_text().replace("headrace_shop.orders:revenue", "headrace_shop.orders:revenues"))
    wrong = invoke("run", "orders", "-C", str(made))
    assert wrong.exit_code == 1
    assert "orders.yml:" in wrong.stderr and "did you mean 'revenue'?" in wrong.stderr
    assert "starting Spark" not in wrong.stderr


def test_stop_means_the_run_on_this_machine_where_nothing_is_deployed(tmp_path: Path) -> None:
    made = copy_bundle(tmp_path / "shop")
    (made / "conf" / "laptop.yml").write_text((made / "conf" / "local.yml").read_text())
    (made / "databricks.yml").unlink()
    shutil.rmtree(made / "resources")
    refused = invoke("stop", "orders", "--env", "laptop", "-C", str(made))
    assert refused.exit_code == 1
    assert "pipeline 'orders' is not running in environment 'laptop': never run" in refused.stderr


def test_follow_and_once_exclude_each_other(bundle: Path) -> None:
    assert invoke("run", "orders", "--follow", "--once", "-C", str(bundle)).exit_code == 2


def test_show_gives_rows_size_and_open_windows(bundle: Path) -> None:
    shown = invoke("show", "gold_revenue", "--limit", "3", "-o", "json", "-C", str(bundle))
    facts = json.loads(shown.output)
    assert shown.exit_code == 0
    assert len(facts["rows"]) == 3
    assert set(facts["rows"][0]) == {"window_start", "window_end", "country", "orders", "revenue"}
    assert facts["count"] > 3
    assert facts["open_windows"] > 0
    assert f"{facts['open_windows']} windows are still open" in invoke("show", "gold_revenue", "-C", str(bundle)).output


def test_show_quarantine_gives_reasons(bundle: Path) -> None:
    shown = invoke("show", "bronze_orders", "--quarantine", "-o", "json", "-C", str(bundle))
    facts = json.loads(shown.output)
    assert facts["table"] == "bronze_orders_quarantine"
    assert facts["count"] > 0
    assert all(row["reasons"] for row in facts["rows"])


def test_a_table_without_refused_rows_has_an_empty_quarantine(bundle: Path) -> None:
    shown = invoke("show", "customers", "--quarantine", "-o", "json", "-C", str(bundle))
    assert (shown.exit_code, json.loads(shown.output)["count"]) == (0, 0)


def test_status_sums_up_without_spark(bundle: Path) -> None:
    facts = json.loads(invoke("status", "orders", "-o", "json", "-C", str(bundle)).output)
    bronze = next(step for step in facts["steps"] if step["step"] == "bronze_orders")
    assert bronze["rows"] == 1_000
    assert bronze["refused"]
    assert facts["run"].startswith("run ended")
    assert "bronze_orders: " in invoke("status", "orders", "-C", str(bundle)).output


def test_a_failing_step_is_named_with_its_cause_and_the_exit_code_is_one(bundle: Path) -> None:
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


def test_a_failing_step_stops_the_others_at_their_batchs_end_and_names_the_log(tmp_path: Path) -> None:
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
    (log,) = re.findall(r"all of it is in (\S+)", output)
    assert "between quantity 0 and 0 failed" in Path(log).read_text()
    spark = bundle / ".headrace" / "checkpoints" / "broken" / "land" / "1" / "spark"
    begun, done = ({file.name for file in (spark / kind).glob("[0-9]*")} for kind in ("offsets", "commits"))
    assert begun == done != set()


def test_check_deep_asks_what_a_run_would_ask_and_writes_nothing(bundle: Path) -> None:
    def everything() -> list[str]:
        return sorted(str(path) for path in bundle.rglob("*") if "logs" not in path.parts)

    before = everything()
    deep = invoke("check", "--deep", "--env", "local", "-C", str(bundle))
    assert (deep.exit_code, everything()) == (0, before), deep.output
    local = bundle / "conf" / "local.yml"
    text = local.read_text()
    local.write_text(text.replace("data/orders", "data/nowhere"))
    try:
        wrong = invoke("check", "--deep", "--env", "local", "-C", str(bundle))
    finally:
        local.write_text(text)
    assert wrong.exit_code == 1
    assert "source 'orders' cannot be opened" in wrong.output


def wait_for_gold(bundle: Path) -> None:
    def has_run() -> bool:
        events = read_events(bundle / ".headrace" / "local", "orders")
        return any(event.what == "batch" and event.step == "gold_revenue" for event in events)

    wait_until(has_run, f"a batch of gold; see {bundle / 'output.txt'}")


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM to all", "headrace stop"])
def test_a_following_run_ends_at_a_batchs_end_when_it_is_asked_to(tmp_path: Path, how: str) -> None:
    bundle = copy_bundle(tmp_path / "a bundle", orders=200, customers=20, files=2, pace=10)
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_for_gold(bundle)
        if how == "headrace stop":
            told = invoke("stop", "orders", "-C", str(bundle))
            assert (told.exit_code, "pipeline orders: run stopped at" in told.output) == (0, True), told.output
        elif how == "SIGTERM to all":  # as a service manager does
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


def test_a_stop_requested_while_spark_starts_is_honoured(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=200, customers=20, files=2, pace=10)
    events = bundle / ".headrace" / "local"
    with headrace("run", "orders", "--follow", bundle=bundle) as process:
        wait_until(lambda: any(read_events(events, "orders")), "the run to be announced")
        stopped = invoke("stop", "orders", "-C", str(bundle))
        assert (stopped.exit_code, "pipeline orders: run stopped at" in stopped.output) == (0, True), stopped.output
        assert process.wait(timeout=60) == 0
    assert [event.what for event in read_events(events, "orders")] == ["run started", "run stopped"]


def test_a_jvm_that_dies_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
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


def test_a_place_that_cannot_be_used_is_named_with_its_fix(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "shop")
    (bundle / ".headrace").write_text("in the way")
    refused = invoke("run", "orders", "-C", str(bundle))
    assert refused.exit_code == 1
    assert f"at   {bundle}/.headrace" in refused.stderr
    assert "fix: see to its owner and permissions" in refused.stderr
