"""Compare the desired jobs of a release with the current jobs of an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.deploy.deploy_state import DeployedJob, State, pause_triggers
from headrace.deploy.desired_job import DesiredJob
from headrace.deploy.plan import Change, JobPlan, Plan
from headrace.deploy.remote import RemoteJob
from headrace.release.manifest import Manifest

# An item of a list is identified by the first of these keys that it has.
ITEM_KEYS = ("task_key", "job_cluster_key", "environment_key", "name")
RUN_SETTINGS = ("tasks", "job_clusters", "environments", "parameters", "run_as")  # a run reads them only at its start
EMPTY_VALUES: tuple[Any, ...] = (None, "", 0, False, {}, [])


@dataclass(frozen=True)
class CurrentJob:
    """A job of the environment and its active runs."""

    job: RemoteJob
    is_running: bool = False  # the job has an active run
    runs_other_release: bool = False  # an active run uses another release


def compare(
    *,
    environment: str,
    host: str,
    root: str,
    state: State,
    manifest: Manifest,
    deployed_manifest: Manifest | None,
    desired: Mapping[str, DesiredJob],
    current: Mapping[str, CurrentJob],
) -> Plan:
    """Return the plan that turns the current jobs into the desired ones.

    `desired` and `current` map job keys to jobs; `current` has all existing jobs of the environment. `manifest` is that
    of the release to deploy. `deployed_manifest` is None if no release or the same release is deployed.
    """
    jobs = [
        _compare_job(key, desired[key], state.jobs.get(key), current.get(key), key in state.stopped)
        for key in sorted(desired)
    ]
    for key in sorted(current.keys() - desired.keys()):
        job = current[key].job
        jobs.append(JobPlan(key, "delete", str(job.settings.get("name", key)), job.id, {}))
    for key in sorted(state.jobs.keys() - current.keys() - desired.keys()):
        deleted_outside = Change("job", state.jobs[key].id, None)
        name = str(state.jobs[key].body.get("name", key))
        jobs.append(JobPlan(key, "delete", name, None, {}, drift=(deleted_outside,)))
    intent = state.intent
    is_new_release = manifest.id != state.release
    return Plan(
        environment=environment,
        host=host,
        root=root,
        lineage=state.lineage,
        serial=state.serial,
        release=manifest.id,
        deployed_release=state.release,
        wheels=tuple(differences(_wheels(deployed_manifest), _wheels(manifest))) if is_new_release else (),
        jobs=tuple(jobs),
        unfinished=f"{intent.command} of {intent.release} by {intent.by} at {intent.at}" if intent else "",
    )


def _compare_job(
    key: str, desired: DesiredJob, deployed: DeployedJob | None, current: CurrentJob | None, stopped: bool
) -> JobPlan:
    """Return the plan for a desired job.

    `deployed` is None if the job is not in the state; an unfinished deployment may have created it. `current` is None
    if the job does not exist.
    """
    body = desired.body
    final_body = pause_triggers(body) if stopped else body
    unchanged = JobPlan(
        key=key,
        action="unchanged",
        name=str(body["name"]),
        id=current.job.id if current else None,
        body=body,
        grants=desired.grants,
        request_files=desired.request_files,
        heartbeat_files=desired.heartbeat_files,
        runs_continuously=desired.runs_continuously,
        stopped=stopped,
    )
    if current is None:
        deleted_outside = (Change("job", deployed.id, None),) if deployed else ()
        return replace(unchanged, action="create", drift=deleted_outside)
    if deployed is None:
        changes = tuple(differences(restrict(current.job.settings, final_body), final_body))
        drift: tuple[Change, ...] = ()
    else:
        grant_changes = differences({"permissions": list(deployed.grants)}, {"permissions": list(desired.grants)})
        changes = (*differences(deployed.sent_body, final_body), *grant_changes)
        changed_outside = differences(deployed.returned_settings, current.job.settings)
        drift = tuple(change for change in changed_outside if _is_significant(change))
    affects_run = current.is_running and any(change.path.startswith(RUN_SETTINGS) for change in (*changes, *drift))
    needs_restart = deployed is not None and deployed.needs_restart
    is_foreign = deployed is None and not current.job.tag  # a job that the deployment takes over
    replaces_run = affects_run or current.runs_other_release or needs_restart or (is_foreign and current.is_running)
    restarts = desired.runs_continuously and replaces_run
    is_changed = changes or drift or restarts or deployed is None
    return replace(
        unchanged,
        action="update" if is_changed else "unchanged",
        changes=changes,
        drift=drift,
        adopted=deployed is None,
        restarts=restarts,
    )


def differences(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """Yield the differences of two JSON values, whose path is `path`. The items of lists are compared by name."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list):
        old_items, new_items = _items_by_name(old), _items_by_name(new)
        for name in dict.fromkeys((*old_items, *new_items)):
            yield from differences(old_items.get(name), new_items.get(name), f"{path}[{name}]")
    elif old != new:
        yield Change(path, old, new)


def restrict(value: Any, template: Any) -> Any:
    """Return a JSON value with only the keys that `template` has. The platform adds other keys to a job's settings.

    A list whose length differs from the template's is returned unchanged.
    """
    if isinstance(value, dict) and isinstance(template, dict):
        return {key: restrict(value[key], inner) for key, inner in template.items() if key in value}
    if isinstance(value, list) and isinstance(template, list) and len(value) == len(template):
        return [restrict(item, inner) for item, inner in zip(value, template, strict=True)]
    return value


def _items_by_name(items: list[Any]) -> dict[str, Any]:
    """Return name -> item. The name is the value of the item's key in ITEM_KEYS, or its index if it has no such key.

    If two items have the same name, the index is appended to the name of the second one.
    """
    by_name: dict[str, Any] = {}
    for index, item in enumerate(items):
        names = [str(item[key]) for key in ITEM_KEYS if key in item] if isinstance(item, dict) else []
        name = names[0] if names else str(index)
        unique_name = f"{name} {index}" if name in by_name else name
        by_name[unique_name] = item
    return by_name


def _is_significant(change: Change) -> bool:
    """Return whether the old or the new value is not empty. The platform adds empty values to existing jobs."""
    return change.old not in EMPTY_VALUES or change.new not in EMPTY_VALUES


def _wheels(manifest: Manifest | None) -> dict[str, str]:
    """Return wheel name -> version and first digits of the hash; an empty dict without a manifest."""
    if manifest is None:
        return {}
    wheels = {}
    for path in manifest.wheels:
        name, version = path.removeprefix("wheels/").split("-")[:2]
        wheels[name] = f"{version} sha256:{manifest.files[path][:12]}"
    return wheels
