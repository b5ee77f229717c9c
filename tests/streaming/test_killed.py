"""`headrace run --follow`, killed repeatedly while rows arrive: the result is the same as without kills."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import expected_tables
from headrace.runtime.events import read_events
from headrace.testing import run_pipeline
from headrace_shop.arrivals import Mix
from processes import copy_bundle, headrace, kill_group, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLED_IN = ("bronze_orders", "silver_orders", "gold_revenue")


def batches(bundle: Path, step: str) -> int:
    events = read_events(bundle / ".headrace" / "local", "orders")
    return sum(event.what == "batch" and event.step == step for event in events)


@pytest.mark.full
def test_kills_do_not_change_the_result(spark: SparkSession, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=2_400, customers=100, files=12, pace=20, mix=Mix(late=0.0))
    local = bundle / "conf" / "local.yml"
    text = local.read_text().replace(".headrace/tables", "tables").replace(".headrace/checkpoints", "checkpoints")
    local.write_text(text.replace("maxFilesPerTrigger: 5", "maxFilesPerTrigger: 2"))
    inbox, pending = bundle / "data" / "orders", bundle / "data" / "pending"
    inbox.rename(pending)
    inbox.mkdir()
    arriving = iter(sorted(pending.iterdir()))
    for step in KILLED_IN:
        with headrace("run", "orders", "--follow", bundle=bundle) as process:
            for _ in range(2):  # the second batch runs in the follow loop
                before = batches(bundle, step)
                for file in islice(arriving, 2):
                    file.rename(inbox / file.name)
                wait_until(
                    lambda step=step, before=before: batches(bundle, step) > before,  # type: ignore[misc]
                    f"another batch of {step}; see {bundle / 'output.txt'}",
                )
            kill_group(process)
    assert next(arriving, None) is None
    sources = {"orders": bundle / "data" / "orders", "customers": bundle / "data" / "customers"}
    run = run_pipeline(spark, bundle, "orders", bundle, sources=sources)

    with (bundle / "data" / "ledger.csv").open() as lines:
        ledger = list(csv.DictReader(lines))
    fates = Counter(entry["fate"] for entry in ledger)
    tables = expected_tables.open_tables(bundle / "tables")
    good = sorted((entry["order_id"],) for entry in ledger if entry["fate"] in ("good", "warned"))
    assert expected_tables.rows(tables, "SELECT order_id FROM bronze_orders") == good
    quarantined = sum(fates[fate] for fate in ("malformed", "future", "invalid"))
    assert expected_tables.rows(tables, "SELECT count(*) FROM bronze_orders_quarantine") == [(quarantined,)]
    assert expected_tables.rows(tables, expected_tables.customers_difference(bundle / "data" / "customers")) == []
    assert expected_tables.rows(tables, expected_tables.silver_difference()) == []
    watermark = [event.watermark for event in run.events if event.step == "gold_revenue" and event.watermark][-1]
    assert expected_tables.rows(tables, expected_tables.gold_difference(watermark)) == []
    assert expected_tables.rows(tables, "SELECT * FROM gold_revenue") != []
