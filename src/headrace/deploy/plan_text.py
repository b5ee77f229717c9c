"""A plan as a reader sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.deploy.plan import Change, JobPlan, Plan

SIGNS = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
WIDEST = 72  # of a value


def in_words(plan: Plan) -> Iterator[str]:
    """The plan, line by line."""
    yield f"plan for {plan.environment}: {plan.host}, {plan.root}"
    if plan.unfinished:
        yield f"  unfinished  {plan.unfinished}"
    if plan.release == plan.before:
        yield f"  release  {plan.release}, as it is there"
    else:
        yield f"  release  {plan.before or 'none'} -> {plan.release}"
        for wheel in plan.wheels:
            yield f"  wheel    {wheel.path}: {wheel.old or 'none'} -> {wheel.new or 'none'}"
        yield f"  steps    {plan.steps}"
    for job in plan.jobs:
        yield from _job(job, plan)
    if plan.is_empty:
        yield "nothing would change"
    else:
        counts = {action: sum(job.action == action for job in plan.jobs) for action in SIGNS}
        told = [f"{count} to {action}" for action, count in counts.items() if count and action != "unchanged"]
        yield "jobs: " + ", ".join([*told, f"{counts['unchanged']} unchanged"])


def _job(job: JobPlan, plan: Plan) -> Iterator[str]:
    notes = []
    if job.adopted:
        notes.append("made by a deployment that did not come to its end")
    if job.stopped:
        notes.append("stopped by us")
    yield f"  {SIGNS[job.action]} job {job.key}: {', '.join([job.action, *notes])}"
    for change in job.changes:
        if not _is_release(change, plan):
            yield f"      {change.path}: {_value(change.old)} -> {_value(change.new)}"
    for change in job.drift:
        if change.path == "job":
            yield "      deleted by hand"
        else:
            yield f"      changed by hand, and put back: {change.path}: {_value(change.old)} -> {_value(change.new)}"
    if job.restarts:
        yield "      its run is asked to stop at its batch's end, and starts again with what is new"


def _is_release(change: Change, plan: Plan) -> bool:
    """Whether a file of the release before became one of this release: that is told once, above."""
    return f"/releases/{plan.before}/" in str(change.old) and f"/releases/{plan.release}/" in str(change.new)


def _value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
