"""Run a step with expectations and a plain query with a filter in turn, in one JVM, and write the CPU time of each.

quality.py starts this script.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Any

import baseline
from process_cost import cpu_of, print_progress
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.config.load import load_bundle
from headrace.spark import session
from headrace.testing import run_pipeline

CASES = [("stateful", "clean"), ("stateful", "bad"), ("stateless", "clean"), ("stateless", "bad")]


def run_expectations(spark: SparkSession, root: Path, pipeline: str, inbox: Path, into: Path) -> None:
    """Run the step of a pipeline of the bundle at `root`, which checks its rows."""
    run_pipeline(spark, root, pipeline, into, sources={"orders": inbox})


def run_filter(spark: SparkSession, root: Path, pipeline: str, inbox: Path, into: Path) -> None:
    """Run a plain query that filters bad rows out and writes the others to Delta."""
    rows = baseline.good_orders(spark, inbox, 5)
    rows = baseline.deduplicated(rows) if pipeline == "stateful" else rows
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(into / "checkpoint"))
    writer.trigger(availableNow=True).start(str(into / "table")).awaitTermination()


CONTENDERS = {"expectations": run_expectations, "filter": run_filter}


def run_round(spark: SparkSession, root: Path, samples: Path, number: int) -> dict[str, Any]:
    """Return the CPU seconds of each case and contender.

    Before each measurement, the contender processes one file, which creates the tables. `number` is the number of the
    round; the order of the contenders alternates from round to round.
    """
    jvm, java = _pid_of_jvm(), _java(spark)
    cost: dict[str, Any] = {}
    for pipeline, sample in CASES:
        names = list(CONTENDERS) if number % 2 else list(CONTENDERS)[::-1]
        for name in names:
            directory = samples.parent / "work"
            inbox = directory / "inbox"
            inbox.mkdir(parents=True)
            first, *others = sorted((samples / sample / "orders").glob("*.json"))
            os.link(first, inbox / first.name)
            CONTENDERS[name](spark, root, pipeline, inbox, directory / "into")
            for file in others:
                os.link(file, inbox / file.name)
            for suffix in ("", " idle"):  # the second run has no new rows
                java.System.gc()
                cpu_before_s = cpu_of(jvm)
                CONTENDERS[name](spark, root, pipeline, inbox, directory / "into")
                cost[f"{pipeline} {sample} {name}{suffix}"] = cpu_of(jvm) - cpu_before_s
            shutil.rmtree(directory)
    return cost


def _pid_of_jvm() -> int:
    gateway: Any = SparkContext._gateway
    return int(gateway.proc.pid)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("output", type=Path, help="the JSON file to write")
    parser.add_argument("--warm", type=int, default=2, help="number of rounds that are not measured")
    parser.add_argument("--rounds", type=int, default=5, help="number of measured rounds")
    arguments = parser.parse_args()
    rounds = []
    with session.bundle_session(load_bundle(arguments.root), name="quality") as spark:
        for number in range(arguments.warm + arguments.rounds):
            cost = run_round(spark, arguments.root, arguments.samples, number)
            print_progress(f"  round {number + 1}: " + ", ".join(f"{name} {value:.1f}" for name, value in cost.items()))
            if number >= arguments.warm:
                rounds.append(cost)
    arguments.output.write_text(json.dumps(rounds))


if __name__ == "__main__":
    main()
