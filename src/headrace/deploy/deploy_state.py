"""The state of an environment: its deployed jobs, its releases, and the deployment in progress."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.deploy.stored_json import Document, from_document, to_document

VERSION = 1  # of the format of state.json

JobBody = dict[str, Any]  # a job as the Jobs API takes it
Grants = tuple[dict[str, str], ...]

TRIGGERS = ("continuous", "schedule", "trigger")


def pause_triggers(body: JobBody) -> JobBody:
    """Return the job with all its triggers paused."""
    return {key: {**value, "pause_status": "PAUSED"} if key in TRIGGERS else value for key, value in body.items()}


def has_active_continuous_trigger(body: JobBody) -> bool:
    """Return whether a run starts at once, and another one when it ends."""
    return bool((body.get("continuous") or {}).get("pause_status") == "UNPAUSED")


@dataclass(frozen=True)
class DeployedJob:
    """A job as it was last sent, and the settings that the platform returned for it."""

    id: int
    release: str
    body: JobBody  # as the release defines it
    returned_settings: JobBody
    is_paused: bool = False  # it was sent with its triggers paused
    grants: Grants = ()
    request_files: tuple[str, ...] = ()  # the files that ask its runs to stop
    runs_continuously: bool = False  # its runs do not end by themselves
    needs_restart: bool = False  # a run of an earlier release has not been replaced yet

    @property
    def sent_body(self) -> JobBody:
        """The body as it was sent."""
        return pause_triggers(self.body) if self.is_paused else self.body

    @classmethod
    def from_document(cls, document: Document) -> DeployedJob:
        """Return the job of a parsed state file."""
        lists = {key: tuple(document[key]) for key in ("grants", "requests")}
        return from_document(cls, {**document, **lists})


@dataclass(frozen=True)
class HistoryEntry:
    """One finished deployment."""

    number: int
    command: str  # deploy, promote, rollback
    release: str
    at: str
    by: str
    promoted_from: str = ""  # environment
    commit: str = ""
    dirty: bool = False
    outcome: str = "done"  # or the reason of its failure


@dataclass(frozen=True)
class Intent:
    """The deployment in progress, written before its first change so that the next one can resume it after a crash."""

    command: str
    release: str
    at: str
    by: str
    creates: dict[str, str] = field(default_factory=dict)  # job key -> name under which it may have been created
    previous_jobs: dict[str, DeployedJob] = field(default_factory=dict)  # the jobs to be changed, as they were

    @classmethod
    def from_document(cls, document: Document) -> Intent:
        """Return the intent of a parsed state file."""
        jobs = {key: DeployedJob.from_document(job) for key, job in document["before"].items()}
        return from_document(cls, {**document, "before": jobs})


@dataclass(frozen=True)
class State:
    """The state of one environment; each write increments `serial`."""

    lineage: str
    serial: int = 0
    release: str = ""  # the last one that was deployed completely
    jobs: dict[str, DeployedJob] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()  # keys of the jobs that `headrace stop` stopped
    intent: Intent | None = None
    history: tuple[HistoryEntry, ...] = ()

    def to_json(self) -> str:
        """Return the content of state.json."""
        return json.dumps({"version": VERSION, **to_document(self)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> State:
        """Parse the content of state.json; raise ValueError if its format has another version."""
        document = json.loads(text)
        version = document.pop("version", None)
        if version != VERSION:
            raise ValueError(f"its format has version {version}, this Headrace reads version {VERSION}")
        jobs = {key: DeployedJob.from_document(job) for key, job in document.pop("jobs").items()}
        history = tuple(from_document(HistoryEntry, entry) for entry in document.pop("history"))
        intent = document.pop("intent")
        return cls(
            **{**document, "stopped": tuple(document["stopped"])},
            jobs=jobs,
            history=history,
            intent=Intent.from_document(intent) if intent else None,
        )

    def with_job(self, key: str, deployed: DeployedJob) -> State:
        """Return the state with this job added or replaced."""
        return replace(self, jobs={**self.jobs, key: deployed})

    def without_job(self, key: str) -> State:
        """Return the state without this job."""
        jobs = {name: job for name, job in self.jobs.items() if name != key}
        return replace(self, jobs=jobs, stopped=tuple(name for name in self.stopped if name != key))

    def with_entry(self, entry: HistoryEntry) -> State:
        """Return the state after a finished deployment."""
        return replace(self, intent=None, history=(*self.history, entry))
