"""Measure the cost of expectations: CPU time of the JVM, compared with a plain query that filters bad rows out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import process_cost
from figures import Figure, Section
from sandbox import Sandbox

from headrace_shop.arrivals import CLEAN, Mix

STEP = """\
steps:
  {table}:
    layer: bronze
    reads:
      orders:
        source: orders
        schema: headrace_shop.orders:ORDER
        watermark: {{column: ordered_at, delay: 10 minutes}}
        expect:
          - {{not_null: [order_id, customer_id]}}
          - {{between: {{quantity: [1, 1000]}}}}
          - {{rule: headrace_shop.orders:amount_matches, on_fail: warn}}
{transform}    writes: {{table: {table}}}
"""
DEDUPLICATE = """\
    transform: headrace.transforms.bronze:deduplicate
    with: {keys: [order_id]}
"""
ENVIRONMENT = """\
engine: {kind: local, cores: 2, memory: 2g}
tables: {root: .headrace/tables}
checkpoints: .headrace/checkpoints
sources:
  orders: {kind: files, format: json, path: data/orders, options: {maxFilesPerTrigger: 5}}
"""
BUNDLE = {
    "conf/pipelines/stateful.yml": STEP.format(table="deduplicated", transform=DEDUPLICATE),
    "conf/pipelines/stateless.yml": STEP.format(table="landed", transform=""),
    "conf/local.yml": ENVIRONMENT,
    "databricks.yml": "bundle: {name: bench}\n",
}
FIVE_PERCENT = Mix(duplicate=0, malformed=0.02, future=0.01, invalid=0.02, late=0, warned=0)
CASES = {  # case in quality_runs.py -> its name in the figures, and the target of the ratio
    "stateful clean": ("stateful, no bad rows", 1.30),
    "stateful bad": ("stateful, 5 % bad rows", None),
    "stateless clean": ("stateless, no bad rows", None),
    "stateless bad": ("stateless, 5 % bad rows", None),
}


def measure(sandbox: Sandbox) -> Section:
    """Run quality_runs.py and return the median ratios of its rounds."""
    rows = sandbox.scaled(400_000, minimum=1_000)
    for name, mix in (("clean", CLEAN), ("bad", FIVE_PERCENT)):
        sandbox.sample(f"quality/{name}", rows, files=21, mix=mix)
    root = sandbox.bundle("quality", sandbox.home, BUNDLE)
    process_cost.print_progress(f"quality: {rows:,} orders, with expectations and with a filter in turn …")
    output = root / "rounds.json"
    script, samples = Path(__file__).with_name("quality_runs.py"), sandbox.home / "samples" / "quality"
    command = [sys.executable, *map(str, (script, root, samples, output))]
    command += ["--warm", "1", "--rounds", "2"] if sandbox.is_trial else []
    process_cost.run(command, directory=root, environment=sandbox.environment)
    rounds = json.loads(output.read_text())

    figures, notes = [], []
    for case, (name, target) in CASES.items():
        ratio = median([cost[f"{case} expectations"] / max(0.01, cost[f"{case} filter"]) for cost in rounds])
        bound = ("at most", target) if target else (None, 0)
        figures.append(Figure(f"expectations / filter, CPU s, {name}", ratio, *bound))
        costs = [
            f"{contender} {median([cost[f'{case} {contender}'] for cost in rounds]):.1f} CPU s "
            f"(a run without new rows {median([cost[f'{case} {contender} idle'] for cost in rounds]):.1f})"
            for contender in ("expectations", "filter")
        ]
        notes.append(f"{name}: {', '.join(costs)}")
    return Section(
        f"quality: {rows:,} orders into Delta, with expectations or a filter", figures, notes, {"rounds": rounds}
    )
