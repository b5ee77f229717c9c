"""Every change of a step on an existing checkpoint: which ones a run refuses, which it notes, and which mean nothing.

All steps have run once. Each case changes one step and runs it. A refused step writes nothing, so these cases share the
tables and checkpoints; the others get copies.
"""

from __future__ import annotations

import re
import shutil

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from flows import Flow
from headrace.config.models import Every
from headrace.errors import GuardError
from headrace.runtime import reset, runner
from headrace.runtime.events import read_events
from runs import with_trigger
from selection import mostly_full

LAND = """
    land:
      layer: bronze
      reads: {rows: {source: rows, schema: "id INT, n INT, at TIMESTAMP"}}
      writes: {table: landed}
    more:
      layer: bronze
      reads: {rows: {source: others, schema: "id INT, n INT, at TIMESTAMP"}}
      writes: {table: others}
    """
TIMED = "{rows: {table: landed, watermark: {column: at, delay: 1 minute}}}"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
WINDOWS = "headrace.transforms.gold:aggregate_windows"
STEPS = {
    "ids": f"""
    ids:
      layer: silver
      reads: {TIMED}
      transform: headrace.transforms.bronze:deduplicate
      with: {{keys: [id]}}
      writes: {{table: ids}}
    """,
    "sums": f"""
    sums:
      layer: gold
      reads: {{rows: {{table: landed}}}}
      transform: {__name__}:totals
      with:
        by: [id]
        function: sum
      output: complete
      writes: {{table: sums}}
    """,
    "windows": f"""
    windows:
      layer: gold
      reads: {TIMED}
      transform: {WINDOWS}
      with:
        time: at
        window: 15 minutes
        aggregates: {{v: {{min: n}}}}
      writes: {{table: windows}}
    """,
    "sessions": f"""
    sessions:
      layer: gold
      reads: {TIMED}
      transform: {WINDOWS}
      with:
        time: at
        gap: 5 minutes
        by: [id]
        aggregates: {{rows: {{count: "*"}}, values: {{count: n}}}}
      writes: {{table: sessions}}
    """,
    "priced": f"""
    priced:
      layer: silver
      reads: {{rows: {{table: landed}}}}
      transform: {__name__}:priced
      with: {{factor: 2, least: 0, drop: []}}
      writes: {{table: priced, partition_by: [id]}}
    """,
    "newest": """
    newest:
      layer: silver
      reads: {rows: {table: landed}}
      writes:
        - table: newest
          mode: upsert
          keys: [id]
          sequence: n
    """,
    # In its first run, the second step is prepared before its table exists. There, columns are nullable.
    "constant": f"""
    constant:
      layer: silver
      reads: {{rows: {{table: landed}}}}
      transform: {__name__}:with_constant
      writes: {{table: constant}}
    """,
    "per_constant": f"""
    per_constant:
      layer: gold
      reads: {{rows: {{table: constant}}}}
      transform: {__name__}:by_constant
      output: complete
      writes: {{table: per_constant}}
    """,
    "both": f"""
    both:
      layer: silver
      reads: {{first: {{table: landed}}, second: {{table: others}}}}
      transform: {__name__}:both
      writes: {{table: both}}
    """,
}


def totals(rows, /, *, by, function):
    value = getattr(F, function)(F.col("n").cast("long"))
    return rows.groupBy(*(F.col(name).alias(f"key_{number}") for number, name in enumerate(by))).agg(value.alias("v"))


def totals_of_texts(rows, /, *, by, function):
    return totals(rows.select(F.col("id").cast("string"), "n"), by=by, function=function)


def sum_and_max(rows, /, *, by, function):
    return rows.groupBy(F.col(by[0]).alias("key_0")).agg((F.sum("n") + F.max("n")).alias("v"))


def priced(rows, /, *, factor, least, drop):
    multiply = F.udf(lambda value: value * factor, "int")
    return rows.where(F.col("n") >= least).withColumn("price", multiply("n")).drop(*drop)


def with_constant(rows):
    return rows.withColumn("one", F.lit(1))


def by_constant(rows):
    return rows.groupBy("one").agg(F.max("one").alias("v"), F.sum(F.col("one") + F.col("n")).alias("w"))


def both(first, second):
    return first.union(second)


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """A pipeline that has run once; then its first step has landed a new row."""
    flow = Flow(spark, tmp_path_factory.mktemp("changed"))
    flow.source("rows")
    flow.source("others")
    flow.steps(LAND + "".join(STEPS.values()))
    for name in ("rows", "others"):
        flow.feed(name, {"id": 1, "n": 1, "at": "2026-01-01T12:00:00Z"})
    flow.run()
    flow.feed("rows", {"id": 2, "n": 2, "at": "2026-01-01T12:30:00Z"})
    flow.run("land")
    return flow


def changed(flow, name, replacements):
    """Change the YAML of one step."""
    text = STEPS[name]
    for old, new in replacements.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    flow.steps(LAND + (STEPS["constant"] if name == "per_constant" else "") + text)


@pytest.fixture
def copy(ran, tmp_path):
    """A copy of the pipeline, which reads the same files: their paths are in the checkpoint."""
    flow = Flow(ran.spark, tmp_path / "copy")
    for name in ("tables", "checkpoints"):
        shutil.copytree(ran.directory / name, flow.directory / name)
    flow._sources = dict(ran._sources)
    return flow


def warnings(flow):
    """Return the warnings of the last run, except those about queries whose state grows."""
    events = list(read_events(flow.bundle().run_files_directory, "flow"))
    messages = [event.message for event in events if event.run == events[-1].run and event.what == "warning"]
    return [message for message in messages if not message.startswith("the state grows")]


# ── Refused ───────────────────────────────────────────────────────────────────────────────────────────

# The step, the replacements in its YAML, the error, the text of the line that the error points to, and whether the
# error offers to accept the change: Spark would start the step, or Spark has to be asked first.
REFUSED = {
    # Spark accepts the old checkpoint, and writes wrong rows.
    "keys of a deduplication": (
        "ids",
        {"keys: [id]": "keys: [n]"},
        "keys of dropDuplicatesWithinWatermark id → n",
        "with:",
        True,
    ),
    "group key with the same output name": ("sums", {"[id]": "[n]"}, "keys of aggregation .*id.* → .*n", "by:", True),
    "sum to max": (
        "sums",
        {"function: sum": "function: max"},
        r"aggregates sum\(.*\) → max\(",
        "function:",
        True,
    ),
    "min to max": (
        "windows",
        {"{min: n}": "{max: n}"},
        r"aggregates min\(rows.n\) → max\(rows.n\)",
        "aggregates:",
        True,
    ),
    "window": ("windows", {"15 minutes": "300 seconds"}, "window 15 minutes → 5 minutes", "window:", True),
    "session gap": ("sessions", {"5 minutes": "10 minutes"}, "session gap 5 minutes → 10 minutes", "gap:", True),
    "append to replace": (
        "priced",
        {"table: priced,": "table: priced, mode: replace,"},
        "mode of table priced append → replace",
        "writes:",
        True,
    ),
    "append to upsert": (
        "ids",
        {"table: ids": "table: ids, mode: upsert, keys: [id], sequence: n"},
        "mode of table ids append → upsert",
        "writes:",
        True,
    ),
    "keys of an upsert": ("newest", {"keys: [id]": "keys: [n]"}, "keys of table newest id → n", "keys:", True),
    "sequence of an upsert": (
        "newest",
        {"sequence: n": "sequence: at"},
        "sequence of table newest n → at",
        "sequence:",
        True,
    ),
    "aggregates of the same type reordered": (
        "sessions",
        {'rows: {count: "*"}, values: {count: n}': 'values: {count: n}, rows: {count: "*"}'},
        r"aggregates count\(1\), count\(rows.n\) → count\(rows.n\), count\(1\)",
        "aggregates:",
        True,
    ),
    # Spark refuses the old checkpoint in the first batch.
    "aggregate added": (
        "sums",
        {":totals": ":sum_and_max"},
        r"aggregates .* → .*max\(.*: Spark refuses the old state",
        "with:",
        False,
    ),
    "key added": (
        "ids",
        {"keys: [id]": "keys: [id, n]"},
        "keys of dropDuplicatesWithinWatermark id → id, n: Spark refuses",
        "with:",
        False,
    ),
    "type of a key": ("sums", {":totals": ":totals_of_texts"}, "keys of aggregation .*STRING|string", "with:", False),
    "operator": (
        "ids",
        {"keys: [id]": "keys: [id], forever: true"},
        "stateful operator 1 dropDuplicatesWithinWatermark.* → dropDuplicates.*: Spark refuses the old state",
        "with:",
        False,
    ),
    "slide of a window": (
        "windows",
        {"window: 15 minutes": "window: 15 minutes\n        slide: 5 minutes"},
        "window 15 minutes → 15 minutes, slide 5 minutes",
        "slide:",
        False,
    ),
    "input removed": (
        "both",
        {", second: {table: others}": "", f"transform: {__name__}:both": ""},
        r"sources table landed \(table\), table others \(table\) → table landed \(table\)",
        "reads:",
        False,
    ),
    "input added": (
        "newest",
        {
            "{rows: {table: landed}}": "{first: {table: landed}, second: {table: others}}"
            f"\n      transform: {__name__}:both"
        },
        r"sources table landed \(table\) → table landed \(table\), table others \(table\)",
        "reads:",
        False,
    ),
    "inputs swapped": (
        "both",
        {"first: {table: landed}, second: {table: others}": "first: {table: others}, second: {table: landed}"},
        "the order of the sources table landed .table., table others .table. → table others",
        "reads:",
        False,
    ),
    "table that is read": (
        "ids",
        {"table: landed": "table: others"},
        "input rows reads table landed → table others",
        "reads:",
        True,
    ),
    "partition column": (
        "ids",
        {"table: ids": "table: ids, partition_by: [n]"},
        "partition columns of table ids none → n",
        "writes:",
        False,
    ),
}


@pytest.mark.parametrize(
    ("name", "replacements", "message", "line", "accepted"), mostly_full(REFUSED, "window", "group key")
)
def test_change_is_refused_at_its_line(ran, name, replacements, message, line, accepted):
    changed(ran, name, replacements)
    versions = ran.files()
    with pytest.raises(
        GuardError, match=f"step '{name}' has changed since its checkpoint was written: {message}"
    ) as error:
        ran.run(name)
    assert {file for file in ran.files() - versions if file.startswith(("tables", "checkpoints"))} == set()
    problem = error.value.problems[0]
    file, _, number = problem.where.rpartition(":")
    assert (ran.directory / file).read_text().splitlines()[int(number) - 1].strip(" -").startswith(line)
    assert ("accept: [" in problem.fix) is accepted
    assert f"headrace reset flow --step {name}" in problem.fix


@pytest.mark.full
def test_step_with_other_partition_columns_starts_over_with_a_new_table(copy):
    changed(copy, "ids", {"table: ids": "table: ids, partition_by: [n]"})
    with pytest.raises(GuardError) as error:
        copy.run("ids")
    assert "and drop the table before the next run" in error.value.problems[0].fix
    planned = reset.plan_reset(copy.spark, copy.bundle(), "flow", ["ids"], downstream=False, table=None)
    reset.apply_reset(copy.spark, copy.bundle(), planned)
    shutil.rmtree(copy.directory / "tables" / "ids")
    copy.run("ids")
    assert DeltaTable(str(copy.directory / "tables" / "ids")).metadata().partition_columns == ["n"]
    assert sorted(row["n"] for row in copy.read("ids")) == [1, 2]


# ── Noted ─────────────────────────────────────────────────────────────────────────────────────────────

NOTED = {
    "formula": ("priced", {"factor: 2": "factor: 3"}, "column price .*: new rows are computed differently"),
    "filter": ("priced", {"least: 0": "least: 1"}, r"filter \(rows.n >= 0\) → \(rows.n >= 1\): applies to new rows"),
    "column left out": ("priced", {"drop: []": "drop: [at]"}, "output columns at timestamp → none: new rows lack them"),
    "partition column left out": ("priced", {", partition_by: [id]": ""}, "partition by of table priced id → none"),
    "time zone": (
        "newest",
        {"writes:": "settings: {spark.sql.session.timeZone: Asia/Tokyo}\n      writes:"},
        "session time zone UTC → Asia/Tokyo: dates and times as text mean other instants in new rows",
    ),
    "watermark policy": (
        "ids",
        {"writes:": "settings: {spark.sql.streaming.multipleWatermarkPolicy: max}\n      writes:"},
        "spark.sql.streaming.multipleWatermarkPolicy stays min, as in the checkpoint; max has no effect before",
    ),
    "state store": (
        "ids",
        {"writes:": f"settings: {{{STATE_STORE}: {ROCKS_DB}}}\n      writes:"},
        f"{STATE_STORE} stays .*HDFSBacked.*, as in the checkpoint",
    ),
}


@pytest.mark.parametrize(("name", "replacements", "note"), mostly_full(NOTED, "formula"))
def test_change_is_noted_and_applies_to_new_rows(copy, name, replacements, note):
    changed(copy, name, replacements)
    assert any(
        re.fullmatch(f"step '{name}': {note}.*", each) for each in runner.check_pipelines(copy.spark, copy.bundle())
    )
    copy.run(name)
    (warning,) = warnings(copy)
    assert re.match(note, warning)
    rows = copy.read(name)
    assert len(rows) == 2
    if name == "priced":
        assert sorted((row["id"], row["price"]) for row in rows) == [
            (1, 2),
            (2, 6 if "factor: 2" in replacements else 4),
        ]


# ── No change ─────────────────────────────────────────────────────────────────────────────────────────

SAME = {
    "nothing": ("both", {}),
    "columns that are never null": ("per_constant", {}),
    "delay in another unit": ("windows", {"delay: 1 minute": "delay: 60 seconds"}),
    "delay": ("ids", {"delay: 1 minute": "delay: 2 minutes"}),
    "rate limit": ("priced", {"table: landed}": "table: landed, options: {maxFilesPerTrigger: 1}}"}),
    "name of the input": ("ids", {"{rows:": "{landed:"}),
    "layer": ("ids", {"layer: silver": "layer: bronze"}),
    "window in another unit": ("windows", {"15 minutes": "900 seconds"}),
    "comments and formatting": (
        "sums",
        {"      with:\n        by: [id]": "      with:  # which?\n        by:\n        - 'id'"},
    ),
}


@pytest.mark.parametrize(("name", "replacements"), mostly_full(SAME, "nothing"))
def test_change_without_a_meaning_is_neither_refused_nor_noted(copy, name, replacements):
    changed(copy, name, replacements)
    copy.run(name)
    assert warnings(copy) == []


@pytest.mark.full
def test_trigger_is_no_part_of_the_query(copy):
    changed(copy, "ids", {})
    bundle = with_trigger(copy.bundle(), Every(every="1 second"))
    runner.run(copy.spark, bundle, "flow", once=True)
    assert warnings(copy) == []
    assert len(copy.read("ids")) == 2


def test_check_reports_changed_steps_too(ran):
    changed(ran, "windows", {"15 minutes": "5 minutes"})
    with pytest.raises(GuardError, match="window 15 minutes → 5 minutes"):
        runner.check_pipelines(ran.spark, ran.bundle())
