"""Compare what the steps of two releases compute in one environment: the signatures in their manifests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.locations import KeyLocations
from headrace.deploy.plan import StepChange, StepPlan
from headrace.release.manifest import Manifest
from headrace.signatures.changes import can_be_accepted, fix_of_refusal
from headrace.signatures.compare import compare
from headrace.signatures.signature import Signature

StepName = tuple[str, str]  # pipeline, step


def why_not_comparable(deployed: Manifest | None, new: Manifest) -> str:
    """Return why no step can be compared; empty if the manifests have signatures.

    `deployed` is None if the manifest of the deployed release is missing.
    """
    if deployed is None:
        return "the deployed release is no longer in the environment"
    for manifest in (deployed, new):
        if "environments" not in manifest.signatures:
            reason = manifest.signatures.get("not_computed", "an older version of Headrace built it")
            return f"release {manifest.id} has no signatures: {reason}"
    return ""


def compare_steps(
    deployed: Manifest, new: Manifest, environment: str, accepted: Mapping[StepName, Collection[str]]
) -> tuple[StepPlan, ...]:
    """Return the comparison of each step in an environment. Both manifests need signatures.

    `accepted` has the digests that the steps of the new release accept.
    """
    before, after = _entries(deployed, environment), _entries(new, environment)
    steps = []
    for name in sorted({*before, *after}):
        if name not in before:
            steps.append(StepPlan(*name, "new"))
        elif name not in after:
            steps.append(StepPlan(*name, "removed"))
        else:
            steps.append(_compare_step(name, before[name], after[name], accepted.get(name, ()), environment))
    return tuple(steps)


def pipelines_of(body: dict[str, Any]) -> set[str]:
    """Return the pipelines that a job with this body runs."""
    calls = find_task_calls(Job("", body, KeyLocations("")))
    return {parameter.value for call in calls if (parameter := call.parameter("pipeline"))}


def _compare_step(
    name: StepName, before: Mapping[str, Any], after: Mapping[str, Any], accepted: Collection[str], environment: str
) -> StepPlan:
    for release, entry in (("new", after), ("deployed", before)):
        if "signature" not in entry:
            return StepPlan(
                *name, "not compared", reason=f"the {release} release has no signature of it: {entry['not_computed']}"
            )
    try:
        old, new = Signature.from_json(before["signature"]), Signature.from_json(after["signature"])
    except ValueError as error:
        return StepPlan(*name, "not compared", reason=f"its {error}")
    changes = [change for change in compare(old, new) if change.path != "versions"]
    reason = ""
    if (old.spark, old.python) != (new.spark, new.python) and old.digest != new.digest:
        versions = " and ".join(f"Spark {each.spark}, Python {each.python}" for each in (old, new))
        reason = f"the signatures were made with {versions}, so only structure was compared"
    refused = [change for change in changes if change.is_refused]
    fix = ""
    if refused and old.digest not in accepted:
        pipeline, step = name
        most_severe = max(refused, key=lambda change: change.verdict)
        digest = old.digest if can_be_accepted(refused) else ""
        fix = fix_of_refusal(most_severe, digest, f"headrace reset {pipeline} --step {step} --env {environment}")
    prefix = "accepted: " if old.digest in accepted else ""
    return StepPlan(
        *name,
        "changed" if changes else "not compared" if reason else "unchanged",
        tuple(StepChange(change.verdict.value, prefix + change.sentence) for change in changes),
        fix,
        reason,
    )


def _entries(manifest: Manifest, environment: str) -> dict[StepName, Mapping[str, Any]]:
    """Return the entries of the steps in an environment, by pipeline and step."""
    pipelines = manifest.signatures["environments"].get(environment, {})
    return {(pipeline, step): entry for pipeline, entries in pipelines.items() for step, entry in entries.items()}
