"""Rebuild the state of an environment whose files were lost: from the tags of its jobs, and from its releases."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from headrace.deploy import upload
from headrace.deploy.deploy_state import TRIGGERS, DeployedJob, HistoryEntry, JobBody, State
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.desired_job import DesiredJob, desired_jobs
from headrace.deploy.remote import RemoteJob, release_of
from headrace.errors import HeadraceError
from headrace.release.manifest import Manifest
from headrace.release.releases import Release

RECOVERED = "recovered"  # the command of the history entries of releases that were found


def rebuild_state(target: DeployTarget) -> State:
    """Return the state as far as the environment's jobs and releases show it; it is not written.

    A job counts as stopped if its triggers are paused, but not in its release. The order of earlier releases is
    unknown; the release of the jobs is the last one. Without jobs, nothing counts as deployed.
    """
    manifests = {
        release: manifest
        for release in target.remote.list_directory(f"{target.root}/releases")
        if (manifest := upload.read_manifest(release, target))
    }
    found = _find_jobs(target)
    desired = {
        release: _desired_jobs(manifest, target)
        for release, manifest in manifests.items()
        if any(release_of(job.settings) == release for job in found.values())
    }
    jobs = {key: _deployed_job(key, job, desired.get(release_of(job.settings), {})) for key, job in found.items()}
    used = {job.release for job in jobs.values()}
    current = next(iter(used)) if len(used) == 1 else ""
    ordered = sorted(manifests, key=lambda release: (release in used, release == current, release))
    return State(
        lineage="",
        release=current if current in manifests else "",
        jobs=jobs,
        stopped=tuple(sorted(key for key, job in jobs.items() if job.is_paused)),
        history=tuple(_entry(number, manifests[release], target) for number, release in enumerate(ordered, 1)),
    )


def _find_jobs(target: DeployTarget) -> dict[str, RemoteJob]:
    """Return the jobs that have a tag of this environment, by key."""
    prefix = target.job_tag("")
    jobs = {}
    for listed in target.remote.list_jobs():
        job = target.remote.get_job(listed.id) if listed.tag.startswith(prefix) else None
        if job is not None:
            jobs[listed.tag.removeprefix(prefix)] = job
    return jobs


def _desired_jobs(manifest: Manifest, target: DeployTarget) -> Mapping[str, DesiredJob]:
    """Return the jobs as a release defines them; none if its configuration cannot be read."""
    with tempfile.TemporaryDirectory(prefix="headrace-release-") as temporary:
        directory = Path(temporary) / manifest.id
        for path in manifest.files:
            if not path.startswith("wheels/"):
                file = directory / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(target.remote.read_file(f"{target.release_path(manifest.id)}/{path}") or b"")
        try:
            return desired_jobs(Release(directory, manifest), target)
        except HeadraceError:
            return {}


def _deployed_job(key: str, job: RemoteJob, desired: Mapping[str, DesiredJob]) -> DeployedJob:
    """Return the state of a job; without its definition, as it is now: its runs cannot be asked to stop."""
    defined = desired.get(key)
    found = DeployedJob(job.id, release_of(job.settings), job.settings, job.settings)
    if defined is None:
        return found
    return DeployedJob(
        id=job.id,
        release=found.release,
        body=defined.body,
        returned_settings=job.settings,
        is_paused=_is_paused(job.settings) and not _is_paused(defined.body),
        grants=defined.grants,
        request_files=defined.request_files,
        heartbeat_files=defined.heartbeat_files,
        runs_continuously=defined.runs_continuously,
    )


def _is_paused(body: JobBody) -> bool:
    return any((body.get(trigger) or {}).get("pause_status") == "PAUSED" for trigger in TRIGGERS)


def _entry(number: int, manifest: Manifest, target: DeployTarget) -> HistoryEntry:
    """Return the history entry of a release that was found."""
    by = target.user
    return HistoryEntry(number, RECOVERED, manifest.id, "", by, commit=manifest.commit, dirty=manifest.dirty)
