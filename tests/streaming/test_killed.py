"""`headrace run --follow`, killed again and again while rows come in: the result is as if nothing had happened."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import wanted
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


def test_kills_do_not_change_the_result(spark: SparkSession, tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=2_400, customers=100, files=12, pace=20, mix=Mix(late=0.0))
    local = bundle / "conf" / "local.yml"
    text = local.read_text().replace(".headrace/tables", "tables").replace(".headrace/checkpoints", "checkpoints")
    local.write_text(text.replace("maxFilesPerTrigger: 5", "maxFilesPerTrigger: 2"))
    inbox, to_come = bundle / "data" / "orders", bundle / "data" / "to_come"
    inbox.rename(to_come)
    inbox.mkdir()
    arriving = iter(sorted(to_come.iterdir()))
    for step in KILLED_IN:
        with headrace("run", "orders", "--follow", bundle=bundle) as process:
            for _ in range(2):  # the second time it goes round
                seen = batches(bundle, step)
                for file in islice(arriving, 2):
                    file.rename(inbox / file.name)
                wait_until(
                    lambda step=step, seen=seen: batches(bundle, step) > seen,  # type: ignore[misc]
                    f"a batch more of {step}; see {bundle / 'output.txt'}",
                )
            kill_group(process)
    assert next(arriving, None) is None
    sources = {"orders": bundle / "data" / "orders", "customers": bundle / "data" / "customers"}
    run = run_pipeline(spark, bundle, "orders", bundle, sources=sources)

    with (bundle / "data" / "ledger.csv").open() as lines:
        ledger = list(csv.DictReader(lines))
    fates = Counter(entry["fate"] for entry in ledger)
    tables = wanted.opened(bundle / "tables")
    good = sorted((entry["order_id"],) for entry in ledger if entry["fate"] in ("good", "warned"))
    assert wanted.rows(tables, "SELECT order_id FROM bronze_orders") == good
    refused = sum(fates[fate] for fate in ("malformed", "future", "refused"))
    assert wanted.rows(tables, "SELECT count(*) FROM bronze_orders_quarantine") == [(refused,)]
    assert wanted.rows(tables, wanted.customers_and_what_they_should_be(bundle / "data" / "customers")) == []
    assert wanted.rows(tables, wanted.silver_and_what_it_should_be()) == []
    closed = [event.watermark for event in run.events if event.step == "gold_revenue" and event.watermark][-1]
    assert wanted.rows(tables, wanted.gold_and_what_it_should_be(closed)) == []
    assert wanted.rows(tables, "SELECT * FROM gold_revenue") != []
