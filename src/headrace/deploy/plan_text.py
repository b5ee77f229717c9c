"""Render a plan as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.deploy.plan import Change, JobPlan, Plan

SIGNS = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
STEP_SIGNS = {"new": "+", "removed": "-", "changed": "~", "unchanged": "~", "not compared": "?"}
PIPELINES = "conf/pipelines/"
MAX_VALUE_WIDTH = 72  # characters
MAX_FILES = 5  # of the damaged files that are named


def render_plan(plan: Plan) -> Iterator[str]:
    """Yield the lines of the plan."""
    yield f"plan for {plan.environment}: {plan.host}, {plan.root}"
    if plan.unfinished:
        yield f"  unfinished  {plan.unfinished}"
    if plan.release == plan.deployed_release:
        yield f"  release  {plan.release}, already deployed"
        if plan.damaged_files:
            yield f"           {len(plan.damaged_files)} of its files are missing or damaged, will be uploaded again"
            yield from (f"             {path}" for path in plan.damaged_files[:MAX_FILES])
    else:
        yield f"  release  {plan.deployed_release or 'none'} -> {plan.release}"
        for wheel in plan.wheels:
            yield f"  wheel    {wheel.path}: {wheel.old or 'none'} -> {wheel.new or 'none'}"
        yield from _render_steps(plan)
    for job in plan.jobs:
        yield from _render_job(job, plan)
    if plan.is_empty:
        yield "nothing would change"
    else:
        counts = {action: sum(job.action == action for job in plan.jobs) for action in SIGNS}
        changes = [f"{count} to {action}" for action, count in counts.items() if count and action != "unchanged"]
        yield "jobs: " + ", ".join([*changes, f"{counts['unchanged']} unchanged"])
    if refused := [step.name for step in plan.steps if step.fix]:
        names = ", ".join(refused)
        yield f"cannot continue their checkpoints of release {plan.deployed_release}, see the fixes above: {names}"


def _render_steps(plan: Plan) -> Iterator[str]:
    """Yield the number of unchanged steps, each other step with its changes, other changed keys, and the commits."""
    if plan.steps_not_compared:
        yield f"  steps    not compared: {plan.steps_not_compared}"
    paths = {step.name: f"{PIPELINES}{step.pipeline}.yml: steps.{step.step}" for step in plan.steps}
    keys = {name: _changed_keys(plan, f"{path}.") for name, path in paths.items()}
    others = [step for step in plan.steps if step.state != "unchanged" or keys[step.name]]
    if len(others) < len(plan.steps):
        yield f"  steps    {len(plan.steps) - len(others)} unchanged"
    for step in others:
        remark = f", cannot continue its checkpoint of release {plan.deployed_release}" if step.fix else ""
        reason = f": {step.reason}" if step.reason else ""
        state = "configuration changed" if step.state == "unchanged" else step.state
        yield f"  {'!' if step.fix else STEP_SIGNS[step.state]} step {step.name}: {state}{remark}{reason}"
        for change in step.changes:
            yield f"      {change.verdict}: {change.sentence}"
        yield from (f"      {line}" for line in keys[step.name].values())
        if step.fix:
            yield f"      fix: {step.fix}"
    shown = {path for lines in keys.values() for path in lines}
    rest = {path: line for path, line in _changed_keys(plan, "").items() if path not in shown | set(paths.values())}
    if rest:
        yield "  configuration"
        yield from (f"      {line}" for line in rest.values())
    if plan.commits:
        yield "  commits"
        yield from (f"      {commit}" for commit in plan.commits)


def _changed_keys(plan: Plan, prefix: str) -> dict[str, str]:
    """Return the changed keys of the configuration whose paths begin with a prefix: path -> line without the prefix."""
    return {
        change.path: f"{change.path.removeprefix(prefix)}: {_render_value(change.old)} -> {_render_value(change.new)}"
        for change in plan.configuration
        if change.path.startswith(prefix)
    }


def _render_job(job: JobPlan, plan: Plan) -> Iterator[str]:
    remarks = []
    if job.adopted:
        remarks.append("created by an unfinished deployment")
    if job.taken_over:
        remarks.append(f"takes over job {job.id}")
    if job.stopped:
        remarks.append("stays stopped")
    yield f"  {SIGNS[job.action]} job {job.key}: {', '.join([job.action, *remarks])}"
    for conflict in job.conflicts:
        yield f"      ! {conflict}, and is not managed by this deployment"
    for change in job.changes:
        if not _replaces_release(change, plan):
            yield f"      {change.path}: {_render_value(change.old)} -> {_render_value(change.new)}"
    for change in job.drift:
        if change.path == "job":
            yield "      was deleted outside Headrace"
        else:
            old, new = _render_value(change.old), _render_value(change.new)
            yield f"      changed outside Headrace: {change.path}: {old} -> {new}, will be set back to {old}"
    if job.restarts:
        yield "      its run stops between two batches, then a run with these changes starts"


def _replaces_release(change: Change, plan: Plan) -> bool:
    """Return whether a path in the deployed release becomes a path in the new one.

    Such changes are not listed: `render_plan` shows the two releases once.
    """
    old_part, new_part = f"/releases/{plan.deployed_release}/", f"/releases/{plan.release}/"
    return old_part in str(change.old) and new_part in str(change.new)


def _render_value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= MAX_VALUE_WIDTH else f"{text[: MAX_VALUE_WIDTH - 1]}…"
