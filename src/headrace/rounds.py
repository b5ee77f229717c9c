"""Follows ending steps in one coordinated loop: each round runs each step once over what is new.

Against queries that run freely side by side, a row is in silver and in gold in about half the time (2 cores): no two
steps fight for the cores, and each batch takes all that has come meanwhile. Each start loads the step's state, though.
Spark's own store reads all of it into memory, so there a step whose state has grown large leaves the loop, and goes on
by itself. RocksDB opens files, and closes them after the turn: else all that a minute's rounds have opened stays open.

A run over few rows spends its time on making ready, so it is told to generate no code; and while more has come, the
batch without rows that closes windows is left to the next round, whose rows close them. With both a row is in silver
after 1.9 s instead of 2.5, in gold's state after 2.5 instead of 3.2 (100 rows a second).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.config.models import Environment, FileSource, LocalEngine, Setting, Step
from headrace.crew import Crew
from headrace.lag import arrivals
from headrace.leftovers import Leftovers
from headrace.steps import Prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Arrived = list[int | None]  # of each input, what is known without starting a query
IDLE = 0.5  # seconds to wait after a round in which nothing moved
LARGE_STATE = 100_000  # rows
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
FEW = 5_000  # rows of a run; generated code is worth its making from about twice as many
NO_CODE: Mapping[str, Setting] = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
NO_CLOSING: Mapping[str, Setting] = {"spark.sql.streaming.noDataMicroBatches.enabled": False}
CLOSED_AFTER: Mapping[str, Setting] = {"spark.sql.streaming.stateStore.unloadOnCommit": True}


def follow(crew: Crew, ending: Sequence[Prepared]) -> None:
    """Goes round until told to stop."""
    together = [ready for ready in ending if ready.step.name not in crew.failed]
    leftovers = Leftovers(crew.spark)
    seen: dict[str, Arrived] = {}
    rows: dict[str, int] = {}
    moved = {table for ready in together for table in ready.step.tables_written}  # the first round finds out
    while (together or crew.going) and not crew.stop.is_set():
        ours = {table for ready in together for table in ready.step.tables_written}
        before, moved = moved, set()
        for ready in list(together):
            arrived = _arrived(ready, crew.environment)
            name = ready.step.name
            if not (has_news(ready, ours, before | moved) and is_new(arrived, seen.get(name))):
                continue
            seen[name] = arrived
            few = NO_CODE if isinstance(crew.environment.engine, LocalEngine) and rows.get(name, FEW) < FEW else {}
            closing: Mapping[str, Setting] = {}
            if crew.recorder.state_rows(name):  # else there is nothing to close, and no directory to list for it
                now = {other.step.name: _arrived(other, crew.environment) for other in together}
                closing = NO_CLOSING if has_more(seen, now) else {}
            by_files = not loads_all_state(ready.step, crew.spark)
            rows[name] = crew.run_to_end(ready, {**few, **closing, **(CLOSED_AFTER if by_files else {})})
            if rows[name]:
                moved |= set(ready.step.tables_written)
            if name in crew.failed:  # and its on_failure lets the others go on
                together.remove(ready)
            elif crew.recorder.state_rows(name) > LARGE_STATE and not by_files:
                together.remove(ready)
                crew.go(ready, "default")
        crew.look_after()
        leftovers.clear()
        if not moved:
            crew.stop.wait(IDLE)


def loads_all_state(step: Step, spark: SparkSession) -> bool:
    """Whether a start of the step reads its whole state into memory."""
    store = step.settings.get(STATE_STORE) or spark.conf.get(STATE_STORE)
    return not str(store).endswith("RocksDBStateStoreProvider")


def has_news(ready: Prepared, ours: set[str], moved: set[str]) -> bool:
    """A step whose streams are all written in this loop has nothing to do until one of them changed."""
    streams = [read for read in ready.step.reads.values() if not read.static]
    return any(read.table not in ours or read.table in moved for read in streams)


def is_new(arrived: Arrived, seen: Arrived | None) -> bool:
    """Whether something has come since; what is not known may have."""
    return None in arrived or arrived != seen


def has_more(seen: Mapping[str, Arrived], now: Mapping[str, Arrived]) -> bool:
    """Whether something has surely come since the turn of one of the steps: the next round has rows."""
    return any(None not in arrived and name in seen and arrived != seen[name] for name, arrived in now.items())


def _arrived(ready: Prepared, environment: Environment) -> Arrived:
    sources = [environment.sources[read.source] if read.source else None for read in ready.step.reads.values()]
    return [arrivals(source.path) if isinstance(source, FileSource) else None for source in sources]
