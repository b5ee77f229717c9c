"""The comparison of the steps of two releases, from the signatures in their manifests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.deploy.plan import Plan
from headrace.deploy.plan_text import render_plan
from headrace.deploy.step_diff import compare_steps, why_not_comparable
from headrace.release.manifest import Manifest
from headrace.signatures.signature import Column, Input, Operator, Signature

SINK = {"kind": "table", "name": "counted", "mode": "append"}
BEFORE = Signature(
    sources=(Input("rows", "table", "table landed"),),
    static_inputs=(),
    stateful=(Operator("deduplicate", (Column("id", "string", "rows.id"),)),),
    watermarks=(),
    filters=("rows.n > 1",),
    joins=(),
    others=(),
    output=(),
    output_mode="append",
    sinks=(SINK,),
    time_zone="UTC",
    ansi=True,
    spark="4.2.0",
    python="3.12",
)
OTHER_KEY = replace(BEFORE, stateful=(Operator("deduplicate", (Column("n", "string", "rows.n"),)),))
OTHER_FILTER = replace(BEFORE, filters=("rows.n > 2",))
UPGRADED = replace(BEFORE, spark="4.3.0", filters=("(rows.n > 1)",))


def manifest(**steps):
    """Return a manifest with these steps of pipeline p in environment staging."""
    entries = {name: step if isinstance(step, dict) else {"signature": step.to_json()} for name, step in steps.items()}
    return Manifest("b2", {}, "0.1.0", signatures={"environments": {"staging": {"p": entries}}})


def compared(before, after, accepted=()):
    (step,) = compare_steps(manifest(step=before), manifest(step=after), "staging", {("p", "step"): accepted})
    return step


def test_unchanged_step():
    step = compared(BEFORE, BEFORE)
    assert (step.state, step.changes, step.fix, step.reason) == ("unchanged", (), "", "")


def test_change_that_a_start_refuses_has_a_fix():
    step = compared(BEFORE, OTHER_KEY)
    assert [change.verdict for change in step.changes] == ["wrong rows"]
    reset = "headrace reset p --step step --env staging"
    assert (
        step.fix
        == f'undo the change, or start over: {reset}; to start all the same, accept: ["{BEFORE.digest}"] in the step'
    )


def test_accepted_change_has_no_fix():
    step = compared(BEFORE, OTHER_KEY, accepted=[BEFORE.digest])
    assert (step.state, step.fix) == ("changed", "")
    assert step.changes[0].sentence.startswith("accepted: keys of deduplicate id → n")


def test_new_and_removed_steps():
    before, after = manifest(a=BEFORE, b=BEFORE), manifest(b=BEFORE, c=BEFORE)
    states = {step.step: step.state for step in compare_steps(before, after, "staging", {})}
    assert states == {"b": "unchanged", "c": "new", "a": "removed"}


def test_step_without_a_signature_is_not_compared():
    missing = {"not_computed": "the schema of input 'rows' is inferred from its data"}
    assert compared(BEFORE, missing).reason == f"the new release has no signature of it: {missing['not_computed']}"
    assert compared(missing, BEFORE).state == "not compared"
    assert "format 99" in compared({"signature": {"format": 99}}, BEFORE).reason


def test_signatures_of_different_versions_are_compared_in_part():
    step = compared(BEFORE, UPGRADED)
    assert (step.state, step.changes, step.fix) == ("not compared", (), "")
    assert "Spark 4.2.0, Python 3.12 and Spark 4.3.0, Python 3.12" in step.reason
    assert compared(BEFORE, replace(BEFORE, spark="4.3.0")).state == "unchanged"
    assert compared(BEFORE, replace(OTHER_KEY, spark="4.3.0")).fix


@pytest.mark.parametrize(
    ("deployed", "reason"),
    [
        (None, "the deployed release is no longer in the environment"),
        (Manifest("a1", {}, "0.1.0"), "release a1 has no signatures: an older version of Headrace built it"),
        (Manifest("a1", {}, "0.1.0", signatures={"not_computed": "no Java"}), "release a1 has no signatures: no Java"),
        (manifest(), ""),
    ],
)
def test_reason_why_no_step_is_compared(deployed, reason):
    assert why_not_comparable(deployed, manifest()) == reason


def test_plan_shows_what_differs(golden):
    inferred = {"not_computed": "the schema of input 'rows' is inferred from its data"}
    before = manifest(same=BEFORE, keys=BEFORE, filter=BEFORE, inferred=inferred, upgraded=BEFORE, old=BEFORE)
    after = manifest(same=BEFORE, keys=OTHER_KEY, filter=OTHER_FILTER, inferred=inferred, upgraded=UPGRADED, new=BEFORE)
    steps = compare_steps(before, after, "staging", {})
    plan = Plan("staging", "host", "/root", "l", 3, "b2", "a1", wheels=(), jobs=(), steps=steps)
    assert Plan.from_json(plan.to_json()) == plan
    not_compared = replace(plan, steps=(), steps_not_compared="release a1 has no signatures: no Java")
    golden("deploy/steps", "\n".join([*render_plan(plan), "", *render_plan(not_compared)]))
