"""Measure restarts without new input: with the guard of the start, and without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import process_cost
from figures import Figure, Section
from sandbox import Sandbox

SCRIPT = Path(__file__).with_name("restart_runs.py")
STEPS = 4  # of the pipeline orders


def measure(sandbox: Sandbox) -> Section:
    """Run the pipeline once, then restart it in one warm session, with and without the guard in turn."""
    data = sandbox.sample("restart", sandbox.scaled(20_000, minimum=1_000))
    root = sandbox.bundle("restart", data)
    output = root / "restart.json"
    process_cost.print_progress("restart: runs without new input, with and without the guard …")
    process_cost.run(
        [sys.executable, str(SCRIPT), str(root), str(output)],
        directory=root,
        environment=sandbox.environment,
        log=root / "log.txt",
        marker=output,
    )
    raw = json.loads(output.read_text())
    guarded, unguarded = median(raw["guarded"]), median(raw["unguarded"])
    signatures = [value for values in raw["signatures"].values() for value in values]
    return Section(
        "restart: a warm start without new input",
        [
            Figure("guard, seconds for each step", (guarded - unguarded) / STEPS, "at most", 0.5),
            Figure("signature, milliseconds (median of the steps)", 1000 * median(signatures), "at most", 120),
            Figure("with the guard / without it", guarded / unguarded),
        ],
        [f"{name}: {median(raw[name]):.2f} s for {STEPS} steps" for name in ("guarded", "unguarded")],
        raw,
    )
