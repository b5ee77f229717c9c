"""Changes of a table's schema while its readers run, and before they start again."""

from __future__ import annotations

import os
import signal

import pytest

from headrace.errors import HeadraceError, StepError
from headrace.runtime import reset, runner
from headrace.runtime.events import read_events
from runs import with_trigger
from selection import mostly_full

LAND = "land: {layer: bronze, reads: {rows: {source: rows, schema: 'id STRING, n INT'}}, writes: {table: landed}}\n"
COPY = "copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied, evolve: add}}\n"
LAST = "last: {layer: gold, reads: {rows: {table: copied}}, writes: {table: last, evolve: add}}\n"


def alter(flow, change, table="landed"):
    flow.spark.sql(f"ALTER TABLE delta.`{flow.directory}/tables/{table}` {change}")


def insert(flow, values):
    flow.spark.sql(f"INSERT INTO delta.`{flow.directory}/tables/landed` VALUES {values}")


def warnings(flow):
    """Return the warnings of the last run, with the names of their steps."""
    events = list(read_events(flow.bundle().run_files_directory, "flow"))
    last = max(event.run for event in events)
    return [f"{event.step}: {event.message}" for event in events if event.run == last and event.what == "warning"]


@pytest.fixture
def landed(flow):
    """A pipeline with a row in each of its tables; then only the readers of the table `landed` are left."""
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1})
    flow.steps(LAND + COPY + LAST)
    flow.run()
    return flow


def run_readers(flow, change, *, rows, follow, until, only=("copy", "last")):
    """Run steps. Change the table `landed` after the first batch; then insert the rows.

    Stop the run after the step `until` has read the inserted rows.
    """
    insert(flow, "('b', 2)")
    is_changed = []

    def watch(event):
        if event.what != "batch" or not event.rows or event.step != until:
            return
        if is_changed:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            is_changed.append(True)
            change()
            insert(flow, rows)

    bundle = flow.bundle() if follow else with_trigger(flow.bundle(), "default")
    runner.run(flow.spark, bundle, "flow", only=only, follow=follow, watch=watch)


@pytest.mark.parametrize("follow", mostly_full([False, True], True))
def test_steps_start_again_once_for_a_new_column(landed, follow):
    change = "ADD COLUMNS (email STRING)"
    run_readers(landed, lambda: alter(landed, change), rows="('c', 3, 'c@d')", follow=follow, until="last")
    expected = [("a", None), ("b", None), ("c", "c@d")]
    assert sorted((row["id"], row["email"]) for row in landed.read("last")) == expected
    assert [warning for warning in warnings(landed) if "starts again" in warning] == [
        "copy: starts again: column email STRING was added to table 'landed'",
        "last: starts again: column email STRING was added to table 'copied'",
    ]


def doubled(rows):
    return rows.withColumn("n", rows.n * 2)


@pytest.mark.full
def test_step_of_the_follow_loop_reads_the_values_of_a_widened_column(landed):
    """Spark would take the values of the wider column for those of the narrower one."""
    for table in ("landed", "copied"):
        alter(landed, "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')", table)

    def widen():
        alter(landed, "ALTER COLUMN n TYPE BIGINT", "copied")
        alter(landed, "ALTER COLUMN n TYPE BIGINT")

    landed.steps(LAND + COPY.replace("writes", f"transform: {__name__}:doubled, writes"))
    run_readers(landed, widen, rows="('c', 5000000000)", follow=True, until="copy", only=["copy"])
    copied = landed.spark.read.format("delta").load(str(landed.directory / "tables" / "copied"))
    assert ("c", 10000000000) in [tuple(row) for row in copied.collect()]


def without_duplicates(rows):
    return rows.dropDuplicates()


@pytest.mark.parametrize("follow", mostly_full([False, True], True))
def test_new_column_that_would_enter_the_state_stops_the_step(flow, follow):
    flow.source("rows")
    flow.feed("rows", {"id": "a", "n": 1})
    flow.steps(LAND + COPY.replace("writes", f"transform: {__name__}:without_duplicates, writes"))
    flow.run()
    with pytest.raises(StepError, match="keys of dropDuplicates id, n → id, n, email") as error:
        change = "ADD COLUMNS (email STRING)"
        run_readers(flow, lambda: alter(flow, change), rows="('c', 3, 'c')", follow=follow, until="copy", only=["copy"])
    assert "headrace reset flow --step copy" in error.value.problems[0].fix
    assert "email" not in flow.read("copied")[0]


MAPPING = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
MAPPING += "'delta.minWriterVersion' = '5')"


@pytest.mark.parametrize("change", ["DROP COLUMN n", "RENAME COLUMN n TO m"])
@pytest.mark.parametrize("moment", mostly_full(["run", "follow", "before"]))
def test_dropped_or_renamed_column_stops_the_step_with_its_name(landed, change, moment):
    alter(landed, MAPPING)
    with pytest.raises(HeadraceError) as error:
        if moment == "before":
            landed.run()
            alter(landed, change)
            landed.run("copy")
        else:
            rows = "('c')" if change.startswith("DROP") else "('c', 3)"
            run_readers(landed, lambda: alter(landed, change), rows=rows, follow=moment == "follow", until="last")
    (problem,) = error.value.problems
    assert problem.message == "step 'copy' cannot continue: column n INT of table 'landed' was dropped or renamed"
    assert "m" not in landed.read("copied")[0]
    if moment == "before":
        assert problem.fix.endswith("or start over: headrace reset flow --step copy")
        planned = reset.plan_reset(landed.spark, landed.bundle(), "flow", ["copy"], downstream=True)
        reset.apply_reset(landed.spark, landed.bundle(), planned)
        landed.run("copy", "last")
        assert [row["id"] for row in landed.read("last")] == ["a"]


@pytest.mark.parametrize("moment", mostly_full(["run", "before"], "before"))
def test_column_with_another_type_stops_the_step_with_both_types(landed, moment, golden):
    def overwrite():
        rows = landed.spark.sql("SELECT 'c' AS id, 'three' AS n")
        path = str(landed.directory / "tables" / "landed")
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)

    with pytest.raises(HeadraceError) as error:
        if moment == "before":
            overwrite()
            landed.run("copy")
        else:
            run_readers(landed, overwrite, rows="('d', 'four')", follow=False, until="last")
    problem = error.value.problems[0]
    golden("failures/changed_type", f"Error: {problem.message}\n  fix: {problem.fix}")
