"""Restart a pipeline without new input, with and without the guard of the start, and write the durations as JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from process_cost import print_progress

from headrace.config.load import load_bundle
from headrace.runtime import prepare, runner
from headrace.runtime.start_guard import StartGuard
from headrace.spark import session

PIPELINE = "orders"


@contextmanager
def unguarded() -> Iterator[None]:
    """Start steps without comparing or recording anything."""
    no_problems = {"check_pairs": lambda guard: [], "check_changes": lambda guard, prepared: []}
    no_records = {"record_start": lambda guard, name: None, "record_tables": lambda guard, name: None}
    with (
        patch.multiple(StartGuard, **no_problems, **no_records),
        patch.object(prepare, "step_signature", lambda *arguments: None),
    ):
        yield


@contextmanager
def timed_signatures(seconds: dict[str, list[float]]) -> Iterator[None]:
    """Add the duration of each step's signature to `seconds`."""
    compute = prepare.step_signature

    def timed(spark: Any, step: Any, *arguments: Any) -> Any:
        started_at = time.perf_counter()
        signature = compute(spark, step, *arguments)
        seconds.setdefault(step.name, []).append(time.perf_counter() - started_at)
        return signature

    with patch.object(prepare, "step_signature", timed):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("output", type=Path, help="the JSON file to write")
    parser.add_argument("--warm", type=int, default=3, help="number of rounds that are not measured")
    parser.add_argument("--rounds", type=int, default=9, help="number of measured rounds")
    arguments = parser.parse_args()
    bundle = load_bundle(arguments.root)
    seconds: dict[str, list[float]] = {"guarded": [], "unguarded": []}
    signatures: dict[str, list[float]] = {}
    with session.bundle_session(bundle, name="restart") as spark:
        runner.run(spark, bundle, PIPELINE)
        for number in range(arguments.warm + arguments.rounds):
            is_measured = number >= arguments.warm
            for name, setting in (
                ("guarded", timed_signatures(signatures if is_measured else {})),
                ("unguarded", unguarded()),
            ):
                started_at = time.perf_counter()
                with setting:
                    runner.run(spark, bundle, PIPELINE)
                if is_measured:
                    seconds[name].append(time.perf_counter() - started_at)
            print_progress(f"  round {number + 1}")
    arguments.output.write_text(json.dumps({**seconds, "signatures": signatures}))


if __name__ == "__main__":
    main()
