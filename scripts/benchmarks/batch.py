"""A small batch through one step to Delta, in a JVM that is warm: Headrace against stock settings by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from figures import Figure, Section, middle
from ground import Attempt, Ground
from measure import say

from headrace.runtime.events import read_events
from headrace_shop.arrivals import CLEAN

ROWS = 100
PIPELINE = """\
steps:
  landed_orders:
    layer: bronze
    reads: {orders: {source: orders, schema: headrace_shop.orders:ORDER}}
    writes: {table: landed_orders}
  bronze_orders:
    layer: bronze
    reads:
      orders:
        source: orders
        schema: headrace_shop.orders:ORDER
        watermark: {column: ordered_at, delay: 10 minutes}
        expect:
          - {not_null: [order_id, customer_id]}
          - {between: {quantity: [1, 1000]}}
    transform: headrace.transforms.bronze:deduplicate
    with: {keys: [order_id]}
    writes: {table: bronze_orders}
"""
ENVIRONMENT = """\
engine: {kind: local, cores: 2, memory: 2g}
tables: {root: .headrace/tables}
checkpoints: .headrace/checkpoints
sources:
  orders: {kind: files, format: json, path: data/orders, options: {maxFilesPerTrigger: 1}}
"""
BUNDLE = {
    "conf/pipelines/small.yml": PIPELINE,
    "conf/local.yml": ENVIRONMENT,
    "databricks.yml": "bundle: {name: bench}\n",
}
# Stock deduplication has 200 partitions, and takes its time.
COUNTS = {"landed_orders": (20, 20), "bronze_orders": (10, 10)}


def measure(ground: Ground) -> Section:
    """Headrace before and after stock; batch times as Spark itself reports them."""
    ground.warm_up()
    figures: list[Figure] = []
    notes: list[str] = []
    raw: dict[str, dict[str, list[int]]] = {}
    for step, (warm, counted) in COUNTS.items():
        warm, counted = (3, 5) if ground.is_trial else (warm, counted)
        data = ground.sample(f"batch-{warm}-{counted}", ROWS * (warm + counted), files=warm + counted, mix=CLEAN)
        took: dict[str, list[int]] = {"headrace": [], "stock": []}
        for name in ("headrace", "stock", "headrace"):
            say(f"batch: {name}, {step}, {warm} + {counted} batches of {ROWS} rows …")
            took[name] += _batches(ground, name, step, data)[warm : warm + counted]
        typical = {name: middle([float(each) for each in own]) for name, own in took.items()}
        bound = ("at least", 6) if step == "landed_orders" else (None, 0)
        figures.append(
            Figure(f"stock by hand / headrace, a batch of {step}", typical["stock"] / typical["headrace"], *bound)
        )
        notes.append(f"{step}: headrace {typical['headrace']:.0f} ms, stock by hand {typical['stock']:.0f} ms")
        raw[step] = took
    return Section(f"batch: {ROWS} rows through one step to Delta, the JVM being warm", figures, notes, {"ms": raw})


def _batches(ground: Ground, name: str, step: str, data: Path) -> list[int]:
    if name == "headrace":
        attempt = ground.headrace(ground.bundle("batch", data, BUNDLE), "small", "--step", step)
        ground.cost(attempt)
        took = _of_headrace(attempt)
    else:
        told = ground.home / "progress.json"
        options = ("--only", step, "--files-per-trigger", "1", "--progress", str(told))
        attempt = ground.by_hand(data, *options, settings="stock")
        ground.cost(attempt)
        took = [batch["milliseconds"] for batch in json.loads(told.read_text()) if batch["rows"] == ROWS]
    shutil.rmtree(attempt.directory)
    return took


def _of_headrace(attempt: Attempt) -> list[int]:
    events = read_events(attempt.directory / ".headrace" / "local", "small")
    return [event.milliseconds for event in events if event.what == "batch" and event.rows == ROWS]
