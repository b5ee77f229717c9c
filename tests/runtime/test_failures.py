"""Failures as a user reads them: real ones, with the cause of each in one line."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Sink, Step
from headrace.errors import StepError
from headrace.runtime import failures
from headrace.runtime.events import read_events


def priced(rows):
    @F.udf("int")
    def price(value):
        raise ValueError(f"no price for {value!r}")

    return rows.withColumn("price", price("value"))


def in_the_batch(rows):
    if not rows.isStreaming:
        raise KeyError("rates")
    return rows


def divided(rows):
    return rows.select((F.lit(1) / (F.length("value") - 3)).alias("n"))


def joined(rows, names):
    return rows.join(names, "value")


STEPS = "".join(
    f"""
{name}:
  layer: bronze
  reads: {{rows: {{source: lines{expect}}}{more}}}
  {transform}
  writes: {{{sink}}}
  on_failure: continue
"""
    for name, expect, more, transform, sink in [
        ("named", "", "", "", "table: names"),
        ("in_python", "", "", f"transform: {__name__}:priced", "memory: priced"),
        ("in_spark", "", "", f"transform: {__name__}:divided", "table: divided"),
        ("in_the_batch", "", "", f"transform: {__name__}:in_the_batch\n  row_wise: true", "table: in_the_batch"),
        ("stopped", ", expect: [{matches: {value: o.*}, on_fail: stop}]", "", "", "table: stopped"),
        ("joined", "", ", names: {table: names, static: true}", f"transform: {__name__}:joined", "memory: joined"),
    ]
)


def test_each_failure_is_one_line_with_its_cause_and_the_other_steps_continue(flow, golden):
    flow.source("lines", "text")
    flow.feed("lines", "two", "three")
    flow.steps(STEPS)
    flow.run("named")
    for file in (flow.directory / "tables" / "names").glob("*.parquet"):
        file.unlink()
    with pytest.raises(StepError) as error:
        flow.run()
    text = str(error.value).replace(str(flow.directory), "HERE").replace(__name__, "module")
    golden("failures/all", re.sub(r"part-[\w.-]+", "part", text))
    assert all("\n" not in problem.message for problem in error.value.problems)
    events = list(read_events(flow.bundle().run_files_directory, "flow"))
    failed = [(event.step, event.message) for event in events if event.what == "step failed"]
    assert {step for step, _ in failed} == {"in_python", "in_spark", "in_the_batch", "stopped", "joined"}
    assert sorted(message for _, message in failed) == sorted(problem.message for problem in error.value.problems)
    assert events[-1].what == "run failed"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no reason given"),
        ("Job aborted due to stage failure", "Job aborted due to stage failure"),
        (
            "Job aborted\norg.x.Failure\n\tat x.y(Z.java:1)\nCaused by: java.io.IOException: no space left",
            "no space left",
        ),
        ("Traceback (most recent call last):\n  File x\nmodule.OddError: its message", "OddError: its message"),
        ("Traceback\npyspark.errors.SparkRuntimeError: [USER_RAISED] its message", "its message"),
    ],
)
def test_root_cause_is_the_deepest_one_with_a_message(text, cause):
    assert failures.root_cause(text) == cause


def test_location_of_a_failure_has_the_offsets_of_the_batch():
    offsets = json.dumps({"Source[x]": {"logOffset": 3}}), json.dumps({"Source[x]": {"logOffset": "4" * 300}})
    text = f"boom\nCurrent Committed Offsets: {offsets[0]}\nCurrent Available Offsets: {offsets[1]}\n\nCurrent State"
    step = Step(name="s", layer="bronze", reads={}, writes=[Sink(console=True)])
    (problem,) = failures.step_error(step, text).problems
    assert problem.where.startswith(f"step 's', after {offsets[0]} up to {{\"Source")
    assert problem.where.endswith("444...")
    assert len(problem.where) < 300


def test_interrupt_is_recognised():
    assert failures.is_interrupt("java.lang.InterruptedException: sleep")
    assert not failures.is_interrupt("java.io.IOException")
