"""What a deployment would change, as a frozen value: the plan that is shown, confirmed and applied."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.deploy.deploy_state import Grants, JobBody, pause_triggers
from headrace.deploy.stored_json import Document, from_document, to_document
from headrace.errors import DeploymentError

Action = Literal["create", "update", "unchanged", "delete"]
NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Change:
    """One changed setting."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True)
class JobPlan:
    """What a deployment would change in one job."""

    key: str
    action: Action
    name: str
    id: int | None
    body: JobBody  # as the release defines it
    grants: Grants = ()
    request_files: tuple[str, ...] = ()
    runs_continuously: bool = False
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()  # changes made outside Headrace: from the deployed value to the current one
    adopted: bool = False  # an unfinished deployment created it
    stopped: bool = False  # with `headrace stop`
    restarts: bool = False  # an active run is to be replaced

    @property
    def sent_body(self) -> JobBody:
        """The body to be sent at the end of the deployment."""
        return pause_triggers(self.body) if self.stopped else self.body

    @property
    def deletes_existing_job(self) -> bool:
        """Whether an existing job would be deleted, which the user must confirm."""
        return self.action == "delete" and self.id is not None

    @classmethod
    def from_document(cls, document: Document) -> JobPlan:
        """Return the job of a parsed plan."""
        lists = {key: tuple(document[key]) for key in ("grants", "requests")}
        changes = {key: tuple(Change(**change) for change in document[key]) for key in ("changes", "drift")}
        return from_document(cls, {**document, **lists, **changes})


@dataclass(frozen=True)
class Plan:
    """What a deployment would change in one environment."""

    environment: str
    host: str
    root: str
    lineage: str
    serial: int
    release: str
    deployed_release: str
    wheels: tuple[Change, ...]
    jobs: tuple[JobPlan, ...]
    unfinished: str = ""  # the deployment that was interrupted
    steps: str = NOT_COMPARED  # the comparison of the steps' signatures

    @property
    def is_empty(self) -> bool:
        """Whether the plan changes nothing."""
        same = self.release == self.deployed_release and not self.unfinished
        return same and all(job.action == "unchanged" for job in self.jobs)

    def to_document(self) -> Document:
        """Return the plan as it is written to JSON."""
        return to_document(self)

    def to_json(self) -> str:
        """Return the content of a plan file."""
        return json.dumps(self.to_document(), indent=1, sort_keys=True) + "\n"

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Load a plan file; raise DeploymentError if it is none."""
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
        return from_document(cls, {**document, "jobs": jobs, "wheels": wheels})
