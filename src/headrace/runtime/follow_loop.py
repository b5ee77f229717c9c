"""Follow bounded steps in one coordinated loop: each round runs every step with new input once.

Compared with queries that run freely side by side, a row is in silver and in gold in about half the time (2 cores): no
two steps compete for the cores, and each batch takes everything that has arrived meanwhile. But each start of a query
loads its state. Spark's default store loads all of it into memory, so a step with large state leaves the loop and runs
continuously, and so does one whose source has had very many files: each start reads the list of them.

RocksDB opens files, and unloads them after each run; otherwise all files that a minute of rounds has opened would stay
open. Each snapshot may add a file, which is merged with others only where their keys overlap, while reading the changes
since the last snapshot is fast. So snapshots are rarer here, but taken after a run with many rows. With keys that only
grow, a run took 10 ms longer each minute, and reading the changes of a million rows takes a second (4.2.0).

A run over few rows spends most of its time on preparation, so it runs without generated code. A batch without rows that
closes windows is never left to the next round: if nothing comes, Spark does not run it in a query that has just been
started (4.2.0).
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

InputFingerprint = list[int | None]  # one for each input; None where only a query can find out what is new
IDLE_PAUSE_S = 0.5  # after a round that found nothing new
MIN_PAUSE_S = 0.05  # at least, after a round that only listed directories
PAUSE_FACTOR = 10  # so that listing directories takes a tenth of the time while nothing comes
COMPACT_AFTER_ROUNDS = 200  # with rows: then merging small files pays off; the first merge takes all of them
LARGE_STATE_ROWS = 100_000
CODEGEN_ROWS = 5_000  # of a run; generating code pays off from about twice as many
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
NO_CODEGEN: Mapping[str, Setting] = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
UNLOAD_STATE: Mapping[str, Setting] = {
    "spark.sql.streaming.stateStore.unloadOnCommit": True,
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 50,
}
SNAPSHOT: Mapping[str, Setting] = {**UNLOAD_STATE, "spark.sql.streaming.stateStore.minDeltasForSnapshot": 1}


def follow(supervisor: QuerySupervisor, bounded: Sequence[PreparedStep]) -> None:
    """Run rounds until the run is stopped."""
    steps = [step for step in bounded if step.step.name not in supervisor.failed]
    cleanup = Py4jCleanup(supervisor.spark)
    seen: dict[str, InputFingerprint] = {}
    rows: dict[str, int] = {}  # of each step's last run
    rounds_with_rows = 0
    changed = {table for step in steps for table in step.step.tables_written}  # before the first round, any may be
    for step in [each for each in steps if each.has_timers]:  # which no input would start
        steps.remove(step)
        supervisor.start(step, Every(every="1 second"))
    while (steps or supervisor.running) and not supervisor.stop.is_set():
        own_tables = {table for step in steps for table in step.step.tables_written}
        written: set[str] = set()
        has_run, began = False, time.monotonic()
        for step in list(steps):
            name = step.step.name
            fingerprint = _fingerprint(step, supervisor.environment)
            if not (may_have_input(step, own_tables, changed | written) and has_changed(fingerprint, seen.get(name))):
                continue
            seen[name] = fingerprint
            has_run = True
            had_few_rows = rows.get(name, CODEGEN_ROWS) < CODEGEN_ROWS
            without_code = isinstance(supervisor.environment.engine, LocalEngine) and had_few_rows
            has_all_state_in_memory = loads_all_state(step.step, supervisor.spark)
            defaults = {
                **(NO_CODEGEN if without_code else {}),
                **({} if has_all_state_in_memory else UNLOAD_STATE if had_few_rows else SNAPSHOT),
                **(supervisor.compaction if rounds_with_rows > COMPACT_AFTER_ROUNDS else {}),
            }
            rows[name] = supervisor.run_once(step, defaults)
            if rows[name]:
                written |= set(step.step.tables_written)
            is_large = supervisor.recorder.state_rows(name) > LARGE_STATE_ROWS and has_all_state_in_memory
            if name in supervisor.failed:  # and its on_failure lets the others continue
                steps.remove(step)
            elif is_large or has_long_file_log(spark_directory(supervisor.environment, supervisor.pipeline, name)):
                steps.remove(step)
                supervisor.start(step, "default")
        changed = set()
        rounds_with_rows += bool(written)
        supervisor.poll()
        if has_run:
            cleanup.run()
        if not written:
            supervisor.stop.wait(IDLE_PAUSE_S if has_run else pause(after=time.monotonic() - began))


def pause(*, after: float) -> float:
    """Return for how many seconds to pause after a round that only listed directories, for so many seconds."""
    return min(IDLE_PAUSE_S, max(MIN_PAUSE_S, PAUSE_FACTOR * after))


def loads_all_state(step: Step, spark: SparkSession) -> bool:
    """Return whether a start of the step loads its whole state into memory."""
    store = step.settings.get(STATE_STORE) or spark.conf.get(STATE_STORE)
    return not str(store).endswith("RocksDBStateStoreProvider")


def may_have_input(step: PreparedStep, own_tables: set[str], changed: set[str]) -> bool:
    """Return false if all streams of a step are tables written in this loop, and none of them has changed."""
    streams = [read for read in step.step.reads.values() if not read.static]
    return any(read.table not in own_tables or read.table in changed for read in streams)


def has_changed(fingerprint: InputFingerprint, seen: InputFingerprint | None) -> bool:
    """Return whether there may be new input since the fingerprint was seen."""
    return None in fingerprint or fingerprint != seen


def _fingerprint(step: PreparedStep, environment: Environment) -> InputFingerprint:
    sources = [environment.sources[read.source] if read.source else None for read in step.step.reads.values()]
    return [directory_fingerprint(source.path) if isinstance(source, FileSource) else None for source in sources]
