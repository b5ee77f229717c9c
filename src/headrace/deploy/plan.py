"""The plan of a deployment, as a frozen value. The same plan is shown, confirmed and applied."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from headrace.deploy.deploy_state import Grants, JobBody, pause_triggers
from headrace.deploy.stored_json import Document, from_document, to_document
from headrace.errors import DeploymentError

Action = Literal["create", "update", "unchanged", "delete"]
FIELD_NAMES = {  # field of Plan -> its name in an error message
    "environment": "environment",
    "host": "host",
    "root": "root path",
    "lineage": "state lineage",
    "serial": "state serial",
    "release": "release",
    "deployed_release": "deployed release",
    "unfinished": "unfinished deployment",
    "damaged_files": "uploaded files",
    "jobs": "jobs",
}


@dataclass(frozen=True)
class Change:
    """One changed setting of a job, or one changed wheel of a release.

    If a job was deleted outside Headrace, `path` is "job", `old` its id and `new` is None.
    """

    path: str  # of the setting in the job's body, such as `tasks[orders].timeout_seconds`; for a wheel, its name
    old: Any  # None if the setting or the wheel is new
    new: Any  # None if the setting or the wheel is removed


@dataclass(frozen=True)
class StepChange:
    """A change of what a step computes: the verdict on it, as text, and a sentence for the user."""

    verdict: str
    sentence: str


@dataclass(frozen=True)
class StepPlan:
    """What differs in a step between the deployed release and the new one."""

    pipeline: str
    step: str
    state: Literal["new", "removed", "changed", "unchanged", "not compared"]
    changes: tuple[StepChange, ...] = ()
    fix: str = ""  # what to do, if the step will not start with a checkpoint of the deployed release; otherwise empty
    reason: str = ""  # why the step was not compared, or only in part

    @property
    def name(self) -> str:
        """The pipeline and the step."""
        return f"{self.pipeline}/{self.step}"

    @classmethod
    def from_document(cls, document: Document) -> StepPlan:
        """Return the step of a parsed plan."""
        return cls(**{**document, "changes": tuple(StepChange(**change) for change in document["changes"])})


@dataclass(frozen=True)
class JobPlan:
    """What a deployment would change in one job."""

    key: str
    action: Action
    name: str
    id: int | None  # None if the job does not exist
    body: JobBody  # as the release defines it
    grants: Grants = ()
    request_files: tuple[str, ...] = ()  # paths of the stop requests that its runs poll
    heartbeat_files: tuple[str, ...] = ()  # paths of the heartbeats of its steps; empty if its runs write none
    runs_continuously: bool = False  # its runs do not end by themselves
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()  # changes made outside Headrace: from the deployed value to the current one
    adopted: bool = False  # an unfinished deployment created the job
    taken_over: bool = False  # the deployment takes over a job that Headrace does not manage
    conflicts: tuple[str, ...] = ()  # other jobs with its name, or with its pipeline and checkpoints
    stopped: bool = False  # a user stopped the job with `headrace stop`, so it stays paused
    restarts: bool = False  # the deployment replaces the job's active run

    @property
    def final_body(self) -> JobBody:
        """The body that the job has at the end of the deployment: with paused triggers if a user stopped the job."""
        return pause_triggers(self.body) if self.stopped else self.body

    @property
    def deletes_existing_job(self) -> bool:
        """Whether an existing job would be deleted, which the user must confirm."""
        return self.action == "delete" and self.id is not None

    @classmethod
    def from_document(cls, document: Document) -> JobPlan:
        """Return the job of a parsed plan. `document` has the keys of the file: see STORED_KEYS."""
        lists = {key: tuple(document.get(key, ())) for key in ("grants", "requests", "heartbeat_files", "conflicts")}
        changes = {key: tuple(Change(**change) for change in document[key]) for key in ("changes", "drift")}
        return from_document(cls, {**document, **lists, **changes})


@dataclass(frozen=True)
class Plan:
    """What a deployment would change in one environment."""

    environment: str
    host: str
    root: str
    lineage: str  # of the state that was compared
    serial: int  # of the same state
    release: str
    deployed_release: str  # empty if there is none
    wheels: tuple[Change, ...]  # changes from the wheels of the deployed release
    jobs: tuple[JobPlan, ...]
    damaged_files: tuple[str, ...] = ()  # of the release, if it is deployed already: they are uploaded again
    unfinished: str = ""  # a description of the interrupted deployment, if there is one
    steps: tuple[StepPlan, ...] = ()  # empty if no other release is deployed, or if the steps were not compared
    steps_not_compared: str = ""  # the reason, if no step was compared
    configuration: tuple[Change, ...] = ()  # changed keys; their paths begin with the file: `conf/prod.yml: trigger`
    commits: tuple[str, ...] = field(default=(), compare=False)  # since the deployed release, as far as git knows

    @property
    def is_empty(self) -> bool:
        """Whether the plan changes nothing."""
        is_deployed = self.release == self.deployed_release and not self.unfinished and not self.damaged_files
        return is_deployed and all(job.action == "unchanged" for job in self.jobs)

    def to_document(self) -> Document:
        """Return the plan as JSON values."""
        return to_document(self)

    def to_json(self) -> str:
        """Return the content of a plan file."""
        return json.dumps(self.to_document(), indent=1, sort_keys=True) + "\n"

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Load a plan file; raise DeploymentError if the file is not a saved plan."""
        try:
            return cls.from_json(path.read_text())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            fix = "save a plan with this version of Headrace: headrace plan --save FILE"
            raise DeploymentError("the file is not a saved plan", where=str(path), fix=fix) from error

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Parse the content of a plan file."""
        document = json.loads(text)
        jobs = tuple(JobPlan.from_document(job) for job in document["jobs"])
        wheels = tuple(Change(**wheel) for wheel in document["wheels"])
        steps = tuple(StepPlan.from_document(step) for step in document["steps"])
        configuration = tuple(Change(**change) for change in document.get("configuration", ()))
        texts = {key: tuple(document.get(key, ())) for key in ("damaged_files", "commits")}
        values = {"jobs": jobs, "wheels": wheels, "steps": steps, "configuration": configuration, **texts}
        return from_document(cls, {**document, **values})


def require_current(plan: Plan, current: Plan) -> None:
    """Raise DeploymentError if a plan differs from `current`, the plan for the environment as it is now."""
    if plan == current:
        return
    changed = [name for field, name in FIELD_NAMES.items() if getattr(plan, field) != getattr(current, field)]
    names = ", ".join(changed) or "wheels, steps or configuration"
    raise DeploymentError(
        f"the plan for {plan.environment!r} is stale: {names} changed since it was made",
        where=f"{current.host}: {current.root}",
        fix="make a new plan (`headrace plan`), review it and apply it",
    )
