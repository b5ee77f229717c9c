"""Follows ending steps in one coordinated loop: each round runs each step once over what is new.

Against queries that run freely side by side, a row is in silver and in gold in about half the time (2 cores): no two
steps fight for the cores, and each batch takes all that has come meanwhile. Each start loads the step's state, though.
Spark's own store reads all of it into memory, so there a step whose state has grown large leaves the loop, and goes on
by itself; so does one whose source has had very many files, of which each start reads the list.

RocksDB opens files, and closes them after the turn: else all that a minute's rounds have opened stays open. Each
snapshot may add a file, merged with others only where their keys overlap, while the changes since the last one are read
in no time. So they are rarer here, but after many rows: with keys that only grow a turn took 10 ms longer each minute,
and one that reads the changes of a million rows takes a second longer (4.2.0).

A run over few rows spends its time on making ready, so it is told to generate no code. A batch without rows that closes
windows is never left to the next round: should nothing come there, Spark would not make it up for a query that has just
been started (4.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.checkpoints.layout import spark_directory
from headrace.config.models import Environment, Every, FileSource, LocalEngine, Setting, Step
from headrace.runtime.lag import directory_fingerprint, has_long_file_log
from headrace.runtime.prepare import PreparedStep
from headrace.runtime.py4j_cleanup import Py4jCleanup
from headrace.runtime.supervisor import QuerySupervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

InputFingerprint = list[int | None]  # of each input, what is known without starting a query
IDLE_PAUSE_S = 0.5  # seconds to wait after a round in which nothing moved
COMPACT_AFTER_ROUNDS = (
    200  # rounds with rows, after which a step's tables are worth merging; the first merge takes all files
)
MIN_PAUSE_S = 0.05  # at least, where no query was started: such a round has only looked at directories
PAUSE_FACTOR = 10  # of a time in which nothing comes, a tenth goes into looks
LARGE_STATE_ROWS = 100_000  # rows
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CODEGEN_ROWS = 5_000  # rows of a run; generated code is worth its making from about twice as many
NO_CODEGEN: Mapping[str, Setting] = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
UNLOAD_STATE: Mapping[str, Setting] = {
    "spark.sql.streaming.stateStore.unloadOnCommit": True,
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 50,
}
SNAPSHOT: Mapping[str, Setting] = {**UNLOAD_STATE, "spark.sql.streaming.stateStore.minDeltasForSnapshot": 1}


def follow(crew: QuerySupervisor, ending: Sequence[PreparedStep]) -> None:
    """Goes round until told to stop."""
    together = [ready for ready in ending if ready.step.name not in crew.failed]
    leftovers = Py4jCleanup(crew.spark)
    seen: dict[str, InputFingerprint] = {}
    rows: dict[str, int] = {}
    rounds_with_rows = 0
    unknown = {table for ready in together for table in ready.step.tables_written}  # the first round finds out
    for ready in [ready for ready in together if ready.has_timers]:  # which nothing that comes would wake
        together.remove(ready)
        crew.go(ready, Every(every="1 second"))
    while (together or crew.going) and not crew.stop.is_set():
        ours = {table for ready in together for table in ready.step.tables_written}
        moved: set[str] = set()
        has_asked, began = False, time.monotonic()
        for ready in list(together):
            arrived = _fingerprints(ready, crew.environment)
            name = ready.step.name
            if not (may_have_input(ready, ours, unknown | moved) and has_changed(arrived, seen.get(name))):
                continue
            seen[name] = arrived
            has_asked = True
            had_few = rows.get(name, CODEGEN_ROWS) < CODEGEN_ROWS
            few = NO_CODEGEN if isinstance(crew.environment.engine, LocalEngine) and had_few else {}
            by_files = not loads_all_state(ready.step, crew.spark)
            files = (UNLOAD_STATE if had_few else SNAPSHOT) if by_files else {}
            merging = crew.merging if rounds_with_rows > COMPACT_AFTER_ROUNDS else {}
            rows[name] = crew.run_to_end(ready, {**few, **files, **merging})
            if rows[name]:
                moved |= set(ready.step.tables_written)
            is_large = crew.recorder.state_rows(name) > LARGE_STATE_ROWS and not by_files
            if name in crew.failed:  # and its on_failure lets the others go on
                together.remove(ready)
            elif is_large or has_long_file_log(spark_directory(crew.environment, crew.pipeline, name)):
                together.remove(ready)
                crew.go(ready, "default")
        unknown = set()
        rounds_with_rows += bool(moved)
        crew.look_after()
        if has_asked:
            leftovers.clear()
        if not moved:
            crew.stop.wait(IDLE_PAUSE_S if has_asked else pause(after=time.monotonic() - began))


def pause(*, after: float) -> float:
    """Seconds to wait after a round that has only looked at directories, for so long."""
    return min(IDLE_PAUSE_S, max(MIN_PAUSE_S, PAUSE_FACTOR * after))


def loads_all_state(step: Step, spark: SparkSession) -> bool:
    """Whether a start of the step reads its whole state into memory."""
    store = step.settings.get(STATE_STORE) or spark.conf.get(STATE_STORE)
    return not str(store).endswith("RocksDBStateStoreProvider")


def may_have_input(ready: PreparedStep, ours: set[str], moved: set[str]) -> bool:
    """A step whose streams are all written in this loop has nothing to do until one of them changed."""
    streams = [read for read in ready.step.reads.values() if not read.static]
    return any(read.table not in ours or read.table in moved for read in streams)


def has_changed(arrived: InputFingerprint, seen: InputFingerprint | None) -> bool:
    """Whether something has come since; what is not known may have."""
    return None in arrived or arrived != seen


def _fingerprints(ready: PreparedStep, environment: Environment) -> InputFingerprint:
    sources = [environment.sources[read.source] if read.source else None for read in ready.step.reads.values()]
    return [directory_fingerprint(source.path) if isinstance(source, FileSource) else None for source in sources]
