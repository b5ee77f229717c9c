"""Follow bounded steps in one loop: each round runs every step that has new input once, over all available data.

In the loop, a row arrives in silver and gold in about half the time that it takes if all steps run continuously
(2 cores): no two steps compete for the cores, and each batch takes everything that has arrived since the previous one.

In each round, the loop starts a new query for each step that it runs, and each start opens the step's state. Spark's
default state store loads the whole state into memory, so a step with large state leaves the loop and runs continuously.
A step whose source has read very many files leaves the loop too, because each start reads the list of these files.

The RocksDB state store does not load the state, but opens its files. The setting `unloadOnCommit` closes them after
each query; otherwise all files that the rounds of a minute have opened would stay open. Each snapshot of the state may
add a file, which RocksDB merges with others only if their keys overlap: with keys that only grow, a query took 10 ms
longer each minute. So the loop takes snapshots more rarely than by default, since reading the changes after the last
snapshot is fast. But reading the changes of a million rows takes a second, so after a query with many rows, the
step's next query takes a snapshot (Spark 4.2.0).

A query over few rows spends most of its time on preparation, so it runs without Spark's code generation.

A batch without rows that closes windows runs in the same round as the batch before it. Spark would not run it in the
next round, in a newly started query without new input (4.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from headrace.config.models import Environment, Every, FileSource, LocalEngine, Setting, Step
from headrace.runtime.lag import directory_fingerprint, has_long_file_log
from headrace.runtime.prepare import PreparedStep
from headrace.runtime.py4j_cleanup import Py4jCleanup
from headrace.runtime.supervisor import QuerySupervisor
from headrace.runtime.triggers import CONTINUOUS_BATCHES

InputFingerprint = list[int | None]  # one number for each input; None if only a query can detect new data
IDLE_PAUSE_S = 0.5  # the longest pause, and the pause after a round whose queries found no rows
MIN_PAUSE_S = 0.05
PAUSE_FACTOR = 10  # pause ten times as long as listing took, so that an idle loop rarely lists directories
COMPACT_AFTER_ROUNDS = 200  # after so many rounds with rows, merging small files pays off, also those of earlier rounds
LARGE_STATE_ROWS = 100_000
# A step that read fewer rows runs without generated code the next time. Generated code pays off from about 10,000 rows.
CODEGEN_ROWS = 5_000
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
NO_CODEGEN: Mapping[str, Setting] = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
UNLOAD_STATE: Mapping[str, Setting] = {
    "spark.sql.streaming.stateStore.unloadOnCommit": True,
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 50,
}
SNAPSHOT: Mapping[str, Setting] = {**UNLOAD_STATE, "spark.sql.streaming.stateStore.minDeltasForSnapshot": 1}


def follow(supervisor: QuerySupervisor, bounded: Sequence[PreparedStep]) -> None:
    """Run rounds until the run is stopped, or until all steps have failed. Steps with timers run continuously instead.

    Raise StepError if a step fails whose `on_failure` is "stop".
    """
    steps = [step for step in bounded if step.step.name not in supervisor.failed]
    cleanup = Py4jCleanup(supervisor.spark)
    fingerprints: dict[str, InputFingerprint] = {}  # of the inputs of each step when it last ran
    last_rows: dict[str, int] = {}  # how many rows each step read when it last ran
    rounds_with_rows = 0
    # Tables that may have rows which their readers in the loop have not read: before the first round, all of them.
    changed = {table for step in steps for table in step.step.tables_written}
    for step in [each for each in steps if each.has_timers]:  # timers expire without new input
        steps.remove(step)
        supervisor.start(step, Every(every="1 second"))
    while (steps or supervisor.running) and not supervisor.stop.is_set():
        own_tables = {table for step in steps for table in step.step.tables_written}
        written: set[str] = set()
        any_step_ran, round_start = False, time.monotonic()
        for step in list(steps):
            name = step.step.name
            fingerprint = _fingerprint(step, supervisor.environment)
            if not may_have_input(step, own_tables, changed | written):
                continue
            if not has_changed(fingerprint, fingerprints.get(name)):
                continue
            fingerprints[name] = fingerprint
            any_step_ran = True
            had_few_rows = last_rows.get(name, CODEGEN_ROWS) < CODEGEN_ROWS
            defaults = _run_settings(supervisor, step.step, had_few_rows=had_few_rows)
            if rounds_with_rows > COMPACT_AFTER_ROUNDS:
                defaults |= supervisor.compaction
            last_rows[name] = supervisor.run_once(step, defaults)
            if last_rows[name]:
                written |= set(step.step.tables_written)
            if name in supervisor.failed:  # its on_failure is "continue", so the other steps stay in the loop
                steps.remove(step)
            elif _is_slow_to_start(supervisor, step.step):
                steps.remove(step)
                supervisor.start(step, CONTINUOUS_BATCHES)
        changed = set()
        rounds_with_rows += bool(written)
        supervisor.poll()
        if any_step_ran:
            cleanup.run()
        if not written:
            listing_seconds = time.monotonic() - round_start
            supervisor.stop.wait(IDLE_PAUSE_S if any_step_ran else pause_seconds(listing_seconds=listing_seconds))


def pause_seconds(*, listing_seconds: float) -> float:
    """Return how long to pause after a round that started no query and only listed directories."""
    return min(IDLE_PAUSE_S, max(MIN_PAUSE_S, PAUSE_FACTOR * listing_seconds))


def loads_all_state(supervisor: QuerySupervisor, step: Step) -> bool:
    """Return whether a start of the step loads its whole state into memory; false with the RocksDB state store.

    The checkpoint decides which state store it uses; only a new checkpoint uses that of the settings.
    """
    restored = supervisor.restored_settings.get(step.name, {})
    store = restored.get(STATE_STORE) or step.settings.get(STATE_STORE) or supervisor.spark.conf.get(STATE_STORE)
    return not str(store).endswith("RocksDBStateStoreProvider")


def may_have_input(step: PreparedStep, own_tables: set[str], changed: set[str]) -> bool:
    """Return whether a step may have new input: always if it reads a source or a table that is not in `own_tables`.

    `own_tables` are the tables that steps of this loop write, `changed` are those of them that may have new rows.
    """
    streams = [read for read in step.step.reads.values() if not read.static]
    return any(read.table not in own_tables or read.table in changed for read in streams)


def has_changed(fingerprint: InputFingerprint, previous: InputFingerprint | None) -> bool:
    """Return whether the inputs may have new data since the previous fingerprint; true if there is no previous one."""
    return None in fingerprint or fingerprint != previous


def _run_settings(supervisor: QuerySupervisor, step: Step, *, had_few_rows: bool) -> dict[str, Setting]:
    """Return Spark settings for the step's next query. They assume that it has as many rows as the previous one.

    `had_few_rows` is whether the previous query read fewer than CODEGEN_ROWS rows; false if there was none.
    """
    settings: dict[str, Setting] = {}
    if had_few_rows and isinstance(supervisor.environment.engine, LocalEngine):
        settings |= NO_CODEGEN
    if not loads_all_state(supervisor, step):
        settings |= UNLOAD_STATE if had_few_rows else SNAPSHOT
    return settings


def _is_slow_to_start(supervisor: QuerySupervisor, step: Step) -> bool:
    """Return whether each start of the step's query takes long: it loads a large state or a long list of files."""
    has_large_state = supervisor.recorder.state_rows(step.name) > LARGE_STATE_ROWS
    if has_large_state and loads_all_state(supervisor, step):
        return True
    return has_long_file_log(supervisor.checkpoints[step.name])


def _fingerprint(step: PreparedStep, environment: Environment) -> InputFingerprint:
    """Return a fingerprint of the step's inputs: a number for the directory of a file source, None for other inputs."""
    sources = [environment.sources[read.source] if read.source else None for read in step.step.reads.values()]
    return [directory_fingerprint(source.path) if isinstance(source, FileSource) else None for source in sources]
