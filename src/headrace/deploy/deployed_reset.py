"""Reset steps of a deployed pipeline: a run that belongs to no job executes the reset where the tables are.

It uses the release and the cluster of the job that runs the pipeline. The job is stopped first, and stays stopped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import WHEEL_TASK, TaskCall, find_task_calls
from headrace.config.databricks.wheel_metadata import HEADRACE
from headrace.config.environment_files import read_environment
from headrace.config.locations import KeyLocations
from headrace.config.models import SparkEngine
from headrace.deploy.deploy_lock import Report
from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget, open_target
from headrace.deploy.deployed_jobs import stop_job
from headrace.deploy.drain import Timeouts, polls
from headrace.deploy.remote import Run
from headrace.deploy.state_store import StateStore
from headrace.errors import ConfigurationError, DeploymentError

ENTRY_POINT = "reset"
COMPUTE = ("new_cluster", "existing_cluster_id", "environment_key", "libraries")  # the keys of a task that are copied
JOB_KEYS = ("run_as", "environments")  # the keys of a job that are copied
Parameters = Mapping[str, str]  # of the entry point `reset`, in addition to those of the deployed task


@dataclass(frozen=True)
class DeployedPipeline:
    """The deployed jobs that run a pipeline."""

    pipeline: str
    target: DeployTarget
    jobs: tuple[str, ...]  # their keys
    body: Mapping[str, Any]  # of the first of these jobs
    call: TaskCall  # the first task of this job that runs the pipeline

    def run_reset(self, parameters: Parameters, timeouts: Timeouts, report: Report) -> str:
        """Execute the reset, and return what it has printed. Raise DeploymentError if it fails."""
        remote = self.target.remote
        run_id = remote.submit_run(self._run_body(parameters), uuid.uuid4().hex)
        report(f"run {run_id} of the deployed release: waiting …")
        run = self._wait_for_end(run_id, timeouts)
        output = remote.read_output(run)
        if run.result != "SUCCESS":
            raise DeploymentError(
                f"run {run_id} ended: {run.message or run.result or run.phase}\n{output.strip()}",
                where=run.url or remote.name,
                fix="correct the cause in its output above, then run the same command again",
            )
        return output

    def stop_jobs(self, timeouts: Timeouts, *, break_lock: bool, report: Report) -> None:
        """Stop the jobs that run the pipeline, between two batches."""
        for key in self.jobs:
            stop_job(key, self.target, timeouts, break_lock=break_lock, report=report)

    def _wait_for_end(self, run_id: int, timeouts: Timeouts) -> Run:
        for _ in polls(timeouts.start):  # yields at least once
            run = self.target.remote.get_run(run_id)
            if not run.is_active:
                return run
        raise DeploymentError(
            f"run {run_id} has not ended within {timeouts.start:g} seconds",
            where=run.url or self.target.remote.name,
            fix="wait for its end there; if it fails, run the same command again",
        )

    def _run_body(self, parameters: Parameters) -> dict[str, Any]:
        """Return the definition of the run, in the format of the Jobs API."""
        task = self.call.task
        call = {**task[WHEEL_TASK], "entry_point": ENTRY_POINT, "package_name": HEADRACE}
        if "parameters" in call:
            call["parameters"] = [*call["parameters"], *(f"--{name}={value}" for name, value in parameters.items())]
        else:
            call["named_parameters"] = {**call.get("named_parameters", {}), **parameters}
        # A run without a job cannot refer to the clusters of a job.
        clusters = {each["job_cluster_key"]: each["new_cluster"] for each in self.body.get("job_clusters", [])}
        shared = {"new_cluster": clusters[task["job_cluster_key"]]} if "job_cluster_key" in task else {}
        compute = {key: task[key] for key in COMPUTE if key in task}
        return {
            "run_name": f"reset {self.pipeline}",
            **{key: self.body[key] for key in JOB_KEYS if key in self.body},
            "tasks": [{"task_key": ENTRY_POINT, **shared, **compute, WHEEL_TASK: call}],
        }


def open_deployed_pipeline(root: Path, environment: str, pipeline: str) -> DeployedPipeline | None:
    """Return the deployed jobs of an environment that run the pipeline. `root` is the directory of the bundle.

    Return None if there are none, so that the pipeline runs with a session of this machine. Raise ConfigurationError if
    this is impossible, because the environment is a workspace.
    """
    if environment not in read_resources(root).targets:
        return None
    draft, _ = read_environment(root, environment, {}, lenient=True)
    engine = draft.environment.engine if draft.environment else None
    if isinstance(engine, SparkEngine) and not engine.releases:
        return None
    target = open_target(root, environment)
    calls = list(_calls(pipeline, StateStore(target).read()))
    if calls:
        jobs = tuple(dict.fromkeys(key for key, _ in calls))
        _, call = calls[0]
        return DeployedPipeline(pipeline, target, jobs, call.job.body, call)
    if isinstance(engine, SparkEngine):
        return None
    raise ConfigurationError(
        f"no deployed job of environment {environment!r} runs pipeline {pipeline!r}",
        where=target.remote.name,
        fix=f"deploy one: headrace deploy --env {environment}; deployed jobs: headrace jobs --env {environment}",
    )


def _calls(pipeline: str, state: State) -> Iterator[tuple[str, TaskCall]]:
    for key, deployed in sorted(state.jobs.items()):
        for call in find_task_calls(Job(key, deployed.body, KeyLocations(""))):
            parameter = call.parameter("pipeline")
            if parameter is not None and parameter.value == pipeline:
                yield key, call
