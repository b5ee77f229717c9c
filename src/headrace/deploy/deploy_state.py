"""The state of an environment: its deployed jobs, its releases, and the deployment in progress."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.deploy.stored_json import Document, from_document, to_document

VERSION = 1  # of the format of the files of the state

JobBody = dict[str, Any]  # the settings of a job in the format of the Jobs API
Grants = tuple[dict[str, str], ...]  # permissions on a job in the format of the Permissions API

TRIGGERS = ("continuous", "schedule", "trigger")  # the settings keys of a job's Databricks triggers


def pause_triggers(body: JobBody) -> JobBody:
    """Return the body with all its triggers paused."""
    return {key: {**value, "pause_status": "PAUSED"} if key in TRIGGERS else value for key, value in body.items()}


def has_active_continuous_trigger(body: JobBody) -> bool:
    """Return whether the job has an unpaused continuous trigger, which starts a new run whenever none is active."""
    continuous = body.get("continuous") or {}
    return bool(continuous.get("pause_status") == "UNPAUSED")


def has_active_trigger(body: JobBody) -> bool:
    """Return whether the job has an unpaused trigger of any kind, which starts its runs."""
    return any((body.get(trigger) or {}).get("pause_status") == "UNPAUSED" for trigger in TRIGGERS)


@dataclass(frozen=True)
class DeployedJob:
    """A job as it was last sent, and the settings that the platform returned for it."""

    id: int
    release: str
    body: JobBody  # as the release defines it
    returned_settings: JobBody
    is_paused: bool = False  # it was sent with its triggers paused
    grants: Grants = ()
    request_files: tuple[str, ...] = ()  # paths of the stop requests that its runs poll
    heartbeat_files: tuple[str, ...] = ()  # paths of the heartbeats of its steps; empty if its runs write none
    runs_continuously: bool = False  # its runs do not end by themselves
    needs_restart: bool = False  # an unfinished deployment was replacing its active run

    @property
    def sent_body(self) -> JobBody:
        """The body as it was sent."""
        return pause_triggers(self.body) if self.is_paused else self.body

    @classmethod
    def from_document(cls, document: Document) -> DeployedJob:
        """Return the job of a parsed state file. `document` has the keys of the file: see STORED_KEYS."""
        lists = {key: tuple(document.get(key, ())) for key in ("grants", "requests", "heartbeat_files")}
        return from_document(cls, {**document, **lists})


@dataclass(frozen=True)
class HistoryEntry:
    """One finished deployment."""

    number: int
    command: str  # deploy, promote, rollback
    release: str
    at: str  # when the deployment ended, as `timestamp` returns it
    by: str  # user name
    promoted_from: str = ""  # the environment whose release was promoted; empty unless the command is promote
    commit: str = ""
    dirty: bool = False  # the release was built from uncommitted changes
    outcome: str = "done"  # or the reason why it failed


@dataclass(frozen=True)
class Intent:
    """The deployment in progress, written before its first change, so that it can be resumed after a crash."""

    command: str  # deploy, promote, rollback
    release: str
    at: str  # when the deployment was started, as `timestamp` returns it
    by: str  # user name
    creates: dict[str, str] = field(default_factory=dict)  # job key -> the job's name; the job may exist already
    previous_jobs: dict[str, DeployedJob] = field(default_factory=dict)  # the changed jobs before the deployment
    entry: int = 0  # the number of its entry in the history; 0 until it is written
    lock: str = ""  # the id of the lock that its command held

    @classmethod
    def from_document(cls, document: Document) -> Intent:
        """Return the intent of a parsed state file. `document` has the keys of the file: see STORED_KEYS."""
        previous_jobs = {key: DeployedJob.from_document(job) for key, job in document["before"].items()}
        return from_document(cls, {**document, "before": previous_jobs})


@dataclass(frozen=True)
class State:
    """The state of one environment; each write increments `serial`."""

    lineage: str  # random id, created with the state; empty before the first write
    serial: int = 0
    release: str = ""  # id of the release that was last deployed completely
    jobs: dict[str, DeployedJob] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()  # keys of the jobs that `headrace stop` stopped
    intent: Intent | None = None
    history: tuple[HistoryEntry, ...] = ()

    def to_json(self) -> str:
        """Return the content of the file of the state."""
        return json.dumps({"version": VERSION, **to_document(self)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> State:
        """Parse the content of a file of the state; raise ValueError if its format has another version."""
        document = json.loads(text)
        version = document.pop("version", None)
        if version != VERSION:
            raise ValueError(f"its format has version {version}, this Headrace reads version {VERSION}")
        jobs = {key: DeployedJob.from_document(job) for key, job in document.pop("jobs").items()}
        history = tuple(from_document(HistoryEntry, entry) for entry in document.pop("history"))
        intent = document.pop("intent")
        stopped = tuple(document.pop("stopped"))
        return cls(
            **document,
            jobs=jobs,
            stopped=stopped,
            intent=Intent.from_document(intent) if intent else None,
            history=history,
        )

    def deployed_releases(self) -> list[str]:
        """Return the ids of all completely deployed releases, the last deployed one first, each once."""
        return list(dict.fromkeys(entry.release for entry in reversed(self.history) if entry.outcome == "done"))

    def with_job(self, key: str, deployed: DeployedJob) -> State:
        """Return the state with this job added or replaced."""
        return replace(self, jobs={**self.jobs, key: deployed})

    def without_job(self, key: str) -> State:
        """Return the state without this job."""
        jobs = {other: job for other, job in self.jobs.items() if other != key}
        return replace(self, jobs=jobs, stopped=tuple(other for other in self.stopped if other != key))

    def with_entry(self, entry: HistoryEntry) -> State:
        """Return the state with this entry in its history."""
        return replace(self, history=(*self.history, entry))
