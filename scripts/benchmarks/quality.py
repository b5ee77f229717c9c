"""What judging costs a step: CPU seconds of the JVM against a plain Delta sink that filters the bad rows away."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import measure as costs
from figures import Figure, Section, middle
from ground import Ground

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
FIVE_PERCENT = Mix(duplicate=0, malformed=0.02, future=0.01, refused=0.02, late=0, warned=0)
NAMES = {
    "stateful clean": ("stateful, no bad rows", 1.30),
    "stateful bad": ("stateful, 5 % bad rows", None),
    "stateless clean": ("stateless, no bad rows", None),
    "stateless bad": ("stateless, 5 % bad rows", None),
}


def measure(ground: Ground) -> Section:
    """The median, over rounds in one JVM, of the two ways' ratio."""
    rows = ground.share(400_000, least=1_000)
    for name, mix in (("clean", CLEAN), ("bad", FIVE_PERCENT)):
        ground.sample(f"quality/{name}", rows, files=21, mix=mix)
    root = ground.bundle("quality", ground.home, BUNDLE)
    costs.say(f"quality: {rows:,} orders, judged and plainly filtered by turns …")
    told = root / "told.json"
    script, samples = Path(__file__).with_name("judging.py"), ground.home / "samples" / "quality"
    command = [sys.executable, *map(str, (script, root, samples, told))]
    command += ["--warm", "1", "--rounds", "2"] if ground.is_trial else []
    costs.run(command, directory=root, environment=ground.environment)
    rounds = json.loads(told.read_text())

    figures, notes = [], []
    for case, (name, target) in NAMES.items():
        ratio = middle([one[f"{case} judged"] / max(0.01, one[f"{case} filtered"]) for one in rounds])
        bound = ("at most", target) if target else (None, 0)
        figures.append(Figure(f"judged / filtered, CPU s, {name}", ratio, *bound))
        took = [
            f"{way} {middle([one[f'{case} {way}'] for one in rounds]):.1f} CPU s "
            f"(a run without new rows {middle([one[f'{case} {way} idle'] for one in rounds]):.1f})"
            for way in ("judged", "filtered")
        ]
        notes.append(f"{name}: {', '.join(took)}")
    return Section(f"quality: {rows:,} orders, judged or filtered, into Delta", figures, notes, {"rounds": rounds})
