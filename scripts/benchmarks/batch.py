"""Measure small batches of one step that writes to Delta, in a warm JVM: Headrace and the stock baseline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import median

from figures import Figure, Section
from process_cost import print_progress
from sandbox import Command, Sandbox

from headrace.runtime.events import read_events
from headrace_shop.arrivals import CLEAN

ROWS_PER_BATCH = 100
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
# Step -> number of warm-up and of measured batches. Deduplication has fewer, because it is slow with stock settings
# (200 partitions).
BATCHES = {"landed_orders": (20, 20), "bronze_orders": (10, 10)}
TRIAL_BATCHES = (3, 5)


def measure(sandbox: Sandbox) -> Section:
    """Measure the stock baseline between two runs of Headrace. The durations are Spark's own, from its progress."""
    sandbox.warm_up()
    figures: list[Figure] = []
    notes: list[str] = []
    raw: dict[str, dict[str, list[int]]] = {}
    for step, (warm_up, measured) in BATCHES.items():
        if sandbox.is_trial:
            warm_up, measured = TRIAL_BATCHES
        files = warm_up + measured  # one for each batch
        data = sandbox.sample(f"batch-{warm_up}-{measured}", ROWS_PER_BATCH * files, files=files, mix=CLEAN)
        durations: dict[str, list[int]] = {"headrace": [], "stock": []}
        for name in ("headrace", "stock", "headrace"):
            print_progress(f"batch: {name}, {step}, {warm_up} + {measured} batches of {ROWS_PER_BATCH} rows …")
            durations[name] += _durations(sandbox, name, step, data)[warm_up : warm_up + measured]
        medians = {name: median(values) for name, values in durations.items()}
        bound = ("at least", 6) if step == "landed_orders" else (None, 0)
        figures.append(
            Figure(f"stock baseline / headrace, a batch of {step}", medians["stock"] / medians["headrace"], *bound)
        )
        notes.append(f"{step}: headrace {medians['headrace']:.0f} ms, stock baseline {medians['stock']:.0f} ms")
        raw[step] = durations
    return Section(
        f"batch: {ROWS_PER_BATCH} rows through one step to Delta, in a warm JVM", figures, notes, {"ms": raw}
    )


def _durations(sandbox: Sandbox, name: str, step: str, data: Path) -> list[int]:
    """Run the step and return the duration of each batch in milliseconds."""
    if name == "headrace":
        command = sandbox.headrace(sandbox.bundle("batch", data, BUNDLE), "small", "--step", step)
        sandbox.run(command)
        durations = _headrace_durations(command)
    else:
        progress = sandbox.home / "progress.json"
        options = ("--only", step, "--files-per-trigger", "1", "--progress", str(progress))
        command = sandbox.baseline(data, *options, settings="stock")
        sandbox.run(command)
        durations = [
            batch["milliseconds"] for batch in json.loads(progress.read_text()) if batch["rows"] == ROWS_PER_BATCH
        ]
    shutil.rmtree(command.directory)
    return durations


def _headrace_durations(command: Command) -> list[int]:
    events = read_events(command.directory / ".headrace" / "local", "small")
    return [event.milliseconds for event in events if event.what == "batch" and event.rows == ROWS_PER_BATCH]
