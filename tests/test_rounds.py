"""A run that follows: who has something to do in a round, and that what comes goes through all steps."""

from __future__ import annotations

import os
import signal

import pytest

from headrace import rounds, runner
from headrace.config.models import Read, Sink, Step
from headrace.steps import Prepared

OURS, ALSO, OTHER = Read(table="ours"), Read(table="also"), Read(table="of_another_pipeline")
STATIC = Read(table="also", static=True)


@pytest.mark.parametrize(
    ("reads", "moved", "news"),
    [
        ([Read(source="files")], set(), True),  # nobody knows what has come from outside
        ([OTHER], set(), True),
        ([OURS], set(), False),
        ([OURS], {"ours"}, True),
        ([OURS, ALSO], {"also"}, True),
        ([OURS, STATIC], {"also"}, False),  # no row of it has come in
        ([OURS, STATIC], {"ours"}, True),
    ],
)
def test_a_step_has_news_when_one_of_its_streams_may_have_moved(reads, moved, news):
    step = Step(name="s", layer="silver", reads={f"r{at}": read for at, read in enumerate(reads)}, writes=[Sink()])
    ready = Prepared(step, writer=None, schema=None, judged=False, native=True, complete=True)
    assert rounds.has_news(ready, {"ours", "also"}, moved) is news


def test_files_are_new_when_there_are_others_than_last_time():
    assert rounds.is_new([1], None)
    assert rounds.is_new([2], [1])
    assert not rounds.is_new([1], [1])
    assert rounds.is_new([None], [None])  # a table, or a place elsewhere: nobody knows


def test_what_comes_while_a_run_follows_goes_through_all_steps(flow):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    flow.steps("""
        land: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: landed}}
        copy: {layer: silver, reads: {lines: {table: landed}}, writes: {table: copied}}
        """)
    events = []

    def watch(event):
        events.append(event)
        if event.step == "copy" and event.batch == 0:
            flow.feed("lines", "two")
        elif event.step == "copy" and event.batch == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    runner.run(flow.spark, flow.bundle(), "flow", follow=True, watch=watch)
    assert sorted(row["value"] for row in flow.read("copied")) == ["one", "two"]
    assert events[-1].what == "run stopped"
    assert [(event.step, event.rows) for event in events if event.rows] == [("land", 1), ("copy", 1)] * 2
