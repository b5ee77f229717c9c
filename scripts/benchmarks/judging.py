"""Runs a judging step and a plain Delta sink by turns in one JVM, and prints what each cost it: for quality.py."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Any

import by_hand
from measure import cpu_of, say
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.spark import session
from headrace.config.load import load_bundle
from headrace.testing import run_pipeline

CASES = [("stateful", "clean"), ("stateful", "bad"), ("stateless", "clean"), ("stateless", "bad")]


def judge(spark: SparkSession, root: Path, pipeline: str, inbox: Path, into: Path) -> None:
    """The step of the bundle."""
    run_pipeline(spark, root, pipeline, into, sources={"orders": inbox})


def filter_away(spark: SparkSession, root: Path, pipeline: str, inbox: Path, into: Path) -> None:
    """The same rows into a plain sink."""
    rows = by_hand.good_orders(spark, inbox, 5)
    rows = by_hand.deduplicated(rows) if pipeline == "stateful" else rows
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(into / "checkpoint"))
    writer.trigger(availableNow=True).start(str(into / "table")).awaitTermination()


CONTENDERS = {"judged": judge, "filtered": filter_away}


def one_round(spark: SparkSession, root: Path, samples: Path, number: int) -> dict[str, Any]:
    """CPU seconds of each case and contender; the first batch, with which the tables are made, is not counted."""
    jvm, java = _pid_of_jvm(), _java(spark)
    cost: dict[str, Any] = {}
    for pipeline, sample in CASES:
        names = list(CONTENDERS) if number % 2 else list(CONTENDERS)[::-1]
        for name in names:
            place = samples.parent / "work"
            inbox = place / "inbox"
            inbox.mkdir(parents=True)
            first, *others = sorted((samples / sample / "orders").glob("*.json"))
            os.link(first, inbox / first.name)
            CONTENDERS[name](spark, root, pipeline, inbox, place / "into")
            for file in others:
                os.link(file, inbox / file.name)
            for what in ("", " idle"):  # the second time there is nothing new
                java.System.gc()
                before = cpu_of(jvm)
                CONTENDERS[name](spark, root, pipeline, inbox, place / "into")
                cost[f"{pipeline} {sample} {name}{what}"] = cpu_of(jvm) - before
            shutil.rmtree(place)
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
    parser.add_argument("told", type=Path, help="the file that gets the figures")
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rounds = []
    with session.bundle_session(load_bundle(arguments.root), name="judging") as spark:
        for number in range(arguments.warm + arguments.rounds):
            cost = one_round(spark, arguments.root, arguments.samples, number)
            say(f"  round {number + 1}: " + ", ".join(f"{name} {value:.1f}" for name, value in cost.items()))
            if number >= arguments.warm:
                rounds.append(cost)
    arguments.told.write_text(json.dumps(rounds))


if __name__ == "__main__":
    main()
