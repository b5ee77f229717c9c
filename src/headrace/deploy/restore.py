"""Whether a job can go back to its earlier release after a failed deployment, and what to do if it cannot."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.deploy import step_diff, upload
from headrace.deploy.deploy_state import DeployedJob
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.health import read_heartbeats
from headrace.deploy.plan import JobPlan, StepPlan
from headrace.errors import Problem
from headrace.release.releases import Release


def refusing_steps(previous: DeployedJob, failed: Release, job: JobPlan, target: DeployTarget) -> list[StepPlan]:
    """Return the steps of a job that its previous release would refuse to continue from checkpoints of the failed one.

    Steps that the failed release has not started are left out, if this is known. If the releases cannot be compared,
    return no step: the start of the previous release compares them again.
    """
    manifest = upload.read_manifest(previous.release, target)
    if manifest is None or manifest.id == failed.id or step_diff.why_not_comparable(manifest, failed.manifest):
        return []
    beats = read_heartbeats(job.heartbeat_files, target)
    started = {(beat.pipeline, beat.step) for beat in beats if beat.release == failed.id}
    pipelines = step_diff.pipelines_of(job.body)
    return [
        step
        for step in step_diff.compare_steps(failed.manifest, manifest, target.name, {})
        if step.fix
        and step.pipeline in pipelines
        and (not job.heartbeat_files or (step.pipeline, step.step) in started)
    ]


def problem(
    job: JobPlan,
    job_id: int,
    target: DeployTarget,
    release: str,
    failure: str,
    previous: DeployedJob | None,
    refusing: Sequence[StepPlan],
) -> Problem:
    """Return the problem of a job that does not work with a release, and what has become of it.

    `previous` is the job before the deployment, None if it is new; `refusing` are the steps that keep it from going
    back.
    """
    key, environment = job.key, target.name
    fix = f"see its output: headrace logs {key} --env {environment}"
    if previous is None:
        outcome = "it is new and is left paused"
    elif not refusing:
        outcome = f"it was restored to release {previous.release}"
    else:
        steps = ", ".join(step.name for step in refusing)
        outcome = f"it is left paused, because release {previous.release} cannot continue the checkpoints of {steps}"
        resets = [f"headrace reset {step.pipeline} --step {step.step} --env {environment}" for step in refusing]
        commands = [*resets, f"headrace rollback --env {environment}", f"headrace start {key} --env {environment}"]
        fix += f"; deploy a corrected release, or go back: {', '.join(commands)}"
    message = f"job {key!r} does not work with release {release}: {failure}; {outcome}"
    return Problem(f"{target.remote.name}: job {job_id}", message, fix)
