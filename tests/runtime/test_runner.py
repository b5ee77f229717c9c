"""Runs: which steps, in which order, with which triggers, and the tables that exist afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from headrace.checkpoints.lock import Lock
from headrace.config.load import load_bundle
from headrace.config.models import Every
from headrace.errors import ConfigurationError, GuardError
from headrace.graph import order
from headrace.runtime import runner
from runs import LINES, recorded, values, with_trigger

REPOSITORY = Path(__file__).parents[2]


# ── Which steps ───────────────────────────────────────────────────────────────────────────────────────


def test_selected_steps_run_in_the_order_of_the_pipeline():
    bundle = load_bundle(REPOSITORY)
    selected = order.select_steps(bundle, "orders", ["gold_revenue", "customers"])
    assert [step.name for step in selected] == ["customers", "gold_revenue"]
    assert len(order.select_steps(bundle, "orders", ())) == 4


def test_unknown_step_is_an_error():
    with pytest.raises(ConfigurationError, match="pipeline 'orders' has no step 'gold'"):
        order.select_steps(load_bundle(REPOSITORY), "orders", ["customers", "gold"])


@pytest.mark.parametrize(
    ("trigger", "triggers", "options", "expected"),
    [
        ("available_now", {}, {}, False),
        ("once", {}, {}, False),
        ("default", {}, {}, True),
        (Every(every="5 seconds"), {}, {}, True),
        ("available_now", {"gold_revenue": "default"}, {}, True),
        ("default", {"customers": "once"}, {"only": ["customers"]}, False),
        ("default", {}, {"once": True}, False),
        ("available_now", {}, {"follow": True}, True),
    ],
)
def test_run_is_unbounded_if_one_of_its_steps_is(trigger, triggers, options, expected):
    bundle = with_trigger(load_bundle(REPOSITORY), trigger, **triggers)
    assert runner.is_unbounded(bundle, "orders", **{"follow": False, "once": False, **options}) is expected


# ── Order and triggers ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("trigger", "once"), [("default", True), ("once", False)])
def test_run_with_once_ends_when_all_available_rows_are_read(flow, trigger, once):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LINES)
    runner.run(flow.spark, with_trigger(flow.bundle(), trigger), "flow", once=once)
    assert values(flow, "lines") == ["one"]
    assert recorded(flow) == ["run started", "run ended"]


def test_independent_steps_run_side_by_side_one_for_each_core(flow):
    flow.source("lines", "text", maxFilesPerTrigger=1)
    for line in "abc":
        flow.feed("lines", line)
    step = "{layer: bronze, reads: {lines: {source: lines}}, writes: {table: %s}}"
    last = "{layer: silver, reads: {lines: {table: first}}, writes: {table: last}}"
    flow.steps("".join(f"{name}: {step % name}\n" for name in ("first", "second", "third")) + f"last: {last}\n")
    active = []

    def watch(event):
        if event.what == "batch":
            active.append({query.name.partition(".")[2] for query in flow.spark.streams.active})

    runner.run(flow.spark, flow.bundle(), "flow", watch=watch)
    assert max(map(len, active)) == 2
    assert not [names for names in active if names >= {"first", "last"}]
    assert [values(flow, table) for table in ("first", "second", "third", "last")] == [list("abc")] * 4


def test_static_table_is_read_again_for_each_batch(flow):
    flow.source("rows")
    flow.source("dims")
    flow.feed("rows", {"k": "a"})
    flow.feed("dims", {"k": "a", "v": "old", "at": 1})
    flow.steps("""
        dims:
          layer: bronze
          reads: {dims: {source: dims, schema: "k STRING, v STRING, at INT"}}
          writes: {table: dims, mode: upsert, keys: [k], sequence: at}
        land: {layer: bronze, reads: {rows: {source: rows, schema: k STRING}}, writes: {table: landed}}
        join:
          layer: silver
          reads: {rows: {table: landed}, dims: {table: dims, static: true}}
          transform: headrace.transforms.silver:join_static
          with: {keys: [k], how: left}
          writes: {table: joined}
        """)
    flow.run("dims")
    joined = []

    def watch(event):
        if not event.rows:
            return
        if event.step == "dims":
            flow.feed("rows", {"k": "a"})
        elif event.step == "join":
            joined.append(event.batch)
            if len(joined) == 1:
                flow.feed("dims", {"k": "a", "v": "new", "at": 2})
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, with_trigger(flow.bundle(), "default"), "flow", watch=watch)
    assert sorted(row["v"] for row in flow.read("joined")) == ["new", "old"]


def test_step_that_another_run_has_locked_is_an_error_before_anything_is_written(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps(LINES)
    lock = Lock(flow.spark, str(flow.directory / "checkpoints" / "flow" / "lines"), "lines")
    with pytest.raises(GuardError, match="step 'lines' is already being run by process"):
        flow.run()
    assert (flow.read("lines"), recorded(flow)) == ([], ["run started", "run failed"])
    lock.release()
    assert len(flow.run().rows("lines")) == 1


# ── Tables ────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_exist_after_a_run_without_rows(flow):
    """For steps of the same run that read them, and for users who query the quarantine."""
    flow.source("lines", "json")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        """)
    run = flow.run()
    assert [run.rows("landed"), run.rows("copied"), run.quarantine("landed")] == [[], [], []]
    assert run.table("copied").columns == ["n"]


def test_quarantine_that_a_step_reads_exists_without_rows(flow):
    flow.source("lines", "json")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed_quarantine}}, writes: {table: copied}}
        """)
    assert flow.run().table("copied").columns[:2] == ["raw", "reasons"]


def test_new_step_can_read_the_quarantine_of_an_existing_table(flow):
    flow.source("lines", "json")
    land = "land: {layer: bronze, reads: {lines: {source: lines, schema: n INT}}, writes: {table: landed}}\n"
    copy = "copy: {layer: silver, reads: {lines: {table: landed_quarantine}}, writes: {table: copied}}\n"
    flow.steps(land)
    flow.feed("lines", {"n": 1})
    flow.run()
    flow.steps(land + copy)
    with pytest.raises(ConfigurationError, match="table 'landed_quarantine' does not exist yet"):
        flow.run("copy")
    flow.run("land")
    assert flow.run("copy").table("copied").columns[:2] == ["raw", "reasons"]
