"""What differs between the configuration of the deployed release and that of the one to deploy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.plan import Change
from headrace.deploy.plan_diff import differences
from headrace.release.manifest import Manifest
from headrace.release.releases import Release

PIPELINES = "conf/pipelines/"


def configuration_changes(deployed: Manifest, release: Release, target: DeployTarget) -> tuple[Change, ...]:
    """Return the changed keys of the pipelines and of the environment, such as `conf/prod.yml: trigger.every`.

    Changes of jobs are not returned: the plan compares the jobs.
    """
    environment = f"conf/{target.name}.yml"
    before, after = deployed.files, release.manifest.files
    return tuple(
        change
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path) and (path == environment or path.startswith(PIPELINES))
        for change in _file_changes(path, deployed, release, target)
    )


def _file_changes(path: str, deployed: Manifest, release: Release, target: DeployTarget) -> Iterator[Change]:
    uploaded = target.remote.read_file(f"{target.release_path(deployed.id)}/{path}") if path in deployed.files else None
    file = release.directory / path
    old, new = _parse(uploaded), _parse(file.read_bytes() if file.exists() else None)
    for change in differences(old, new):
        yield Change(f"{path}: {change.path}" if change.path else path, change.old, change.new)


def _parse(content: bytes | None) -> Any:
    """Return the content of a YAML file; the text "unreadable" if it is not YAML, and nothing if there is no file."""
    try:
        return yaml.safe_load(content) if content is not None else {}
    except yaml.YAMLError:
        return "unreadable"
