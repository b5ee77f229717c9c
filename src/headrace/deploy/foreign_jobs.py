"""Find jobs that a deployment does not manage and that do the same as one that it would create."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import TaskCall, find_task_calls
from headrace.config.environment_files import read_environment
from headrace.config.locations import KeyLocations
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.desired_job import DesiredJob, checkpoint_directory
from headrace.deploy.remote import RemoteJob


@dataclass(frozen=True)
class ForeignJob:
    """A job that this deployment does not manage, and what it has in common with a job of the deployment."""

    job: RemoteJob
    reason: str

    @property
    def description(self) -> str:
        """The job and the reason, as text."""
        deployment = self.job.settings.get("deployment") or {}
        maker = self.job.tag or deployment.get("metadata_file_path", "")
        return f"job {self.job.id} {self.reason}" + (f" (it belongs to {maker})" if maker else "")


def find_foreign_jobs(
    desired: Mapping[str, DesiredJob], target: DeployTarget, others: Sequence[RemoteJob]
) -> dict[str, list[ForeignJob]]:
    """Return the foreign jobs of each of the desired jobs: those with its name, or with its pipeline and checkpoints.

    `others` are the jobs, with their tasks, that the deployment does not manage. A job of the same name counts only if
    Headrace did not deploy it: in one workspace, the jobs of two environments may have the same names.
    """
    found: dict[str, list[ForeignJob]] = {}
    for job in others:
        if job.tag.startswith(target.job_tag("")):
            continue
        for key, own in desired.items():
            if not job.tag and job.settings.get("name") == own.body["name"]:
                found.setdefault(key, []).append(ForeignJob(job, "has the same name"))
            elif pipeline := next(_shared_pipelines(job, own, target), ""):
                reason = f"runs pipeline {pipeline!r} with the same checkpoints"
                found.setdefault(key, []).append(ForeignJob(job, reason))
    return found


def _shared_pipelines(job: RemoteJob, own: DesiredJob, target: DeployTarget) -> Iterator[str]:
    """Yield the pipelines that a foreign job runs with the checkpoints of a desired job.

    If its configuration cannot be read, the name of its environment decides.
    """
    pipelines = {directory.rpartition("/")[2] for directory in own.checkpoints}
    for call in find_task_calls(Job("", job.settings, KeyLocations(""))):
        pipeline, environment = call.parameter("pipeline"), call.parameter("env")
        if pipeline is None or environment is None or pipeline.value not in pipelines:
            continue
        directory = _checkpoint_directory(call, pipeline.value, environment.value, target)
        if directory in own.checkpoints or (not directory and environment.value == target.name):
            yield pipeline.value


def _checkpoint_directory(call: TaskCall, pipeline: str, environment: str, target: DeployTarget) -> str:
    """Return the directory of a pipeline's checkpoints, from the configuration that a task names; empty if unknown."""
    conf = call.parameter("conf")
    paths = [f"{conf.value.rstrip('/')}{middle}/{environment}.yml" for middle in ("", "/conf")] if conf else []
    content = next(filter(None, (target.remote.read_file(path) for path in paths)), None)
    if content is None:
        return ""
    values = (parameter.value.partition("=") for parameter in call.all_parameters("value"))
    with tempfile.TemporaryDirectory(prefix="headrace-conf-") as root:
        file = Path(root) / "conf" / f"{environment}.yml"
        file.parent.mkdir()
        file.write_bytes(content)
        draft, _ = read_environment(Path(root), environment, {name: value for name, _, value in values}, lenient=True)
    return checkpoint_directory(draft.environment, pipeline) if draft.environment else ""
