"""One run of a job and its tasks: what is kept of it, and how it is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from headrace.testing.workspace.http_messages import Document

ACTIVE = ("QUEUED", "PENDING", "RUNNING", "TERMINATING")
ENDED = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")
# How an end is told in the `status` object: a code and whose doing it was.
TERMINATION: Mapping[str, tuple[str, str]] = {
    "SUCCESS": ("SUCCESS", "SUCCESS"),
    "CANCELED": ("USER_CANCELED", "SUCCESS"),
    "FAILED": ("RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
    "UPSTREAM_FAILED": ("SKIPPED", "CLIENT_ERROR"),
    "EXCLUDED": ("SKIPPED", "SUCCESS"),
    "MAXIMUM_CONCURRENT_RUNS_REACHED": ("MAX_CONCURRENT_RUNS_EXCEEDED", "CLIENT_ERROR"),
    "": ("INTERNAL_ERROR", "INTERNAL_ERROR"),
}


def now() -> int:
    """Milliseconds, as the platform counts time."""
    return int(time.time() * 1000)


@dataclass
class Progress:
    """How far something has come: its life-cycle state, and the result once it has ended."""

    run_id: int
    phase: str = "PENDING"
    result: str = ""
    message: str = ""
    start: int = field(default_factory=now)
    end: int = 0

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.phase in ACTIVE

    def finish(self, result: str, message: str = "", phase: str = "TERMINATED") -> None:
        """It has ended."""
        self.phase, self.result, self.message, self.end = phase, result, message, now()

    def told(self) -> Document:
        """State, status and times."""
        state: Document = {"life_cycle_state": self.phase, "state_message": self.message}
        status: Document = {"state": "TERMINATED" if self.phase in ENDED else self.phase}
        if self.result:
            state |= {"result_state": self.result, "user_cancelled_or_timedout": self.result == "CANCELED"}
        if self.phase in ENDED:
            code, whose = TERMINATION[self.result]
            status["termination_details"] = {"code": code, "type": whose, "message": self.message}
        if self.phase == "QUEUED":
            reason = "Queued due to reaching maximum concurrent runs of the job."
            state["queue_reason"] = reason
            status["queue_details"] = {"code": "MAX_CONCURRENT_RUNS_REACHED", "message": reason}
        lasted = {"end_time": self.end, "run_duration": self.end - self.start} if self.end else {}
        return {"run_id": self.run_id, "state": state, "status": status, "start_time": self.start, **lasted}


@dataclass
class TaskRun(Progress):
    """One task of a run, and what its failure said."""

    key: str = ""
    error: str = ""
    trace: str = ""


@dataclass
class Run(Progress):
    """One run; `settings` is the job's definition as it was at the start."""

    job_id: int = 0
    number: int = 1
    user: str = ""
    trigger: str = "ONE_TIME"
    token: str = ""
    settings: Document = field(default_factory=dict)
    overrides: Document = field(default_factory=dict)
    tasks: list[TaskRun] = field(default_factory=list)

    @classmethod
    def read(cls, document: Document) -> Run:
        """The run as it was written down."""
        return cls(**{**document, "tasks": [TaskRun(**task) for task in document["tasks"]]})

    def written(self) -> Document:
        """What is written down of the run."""
        return asdict(self)

    def definition(self, key: str) -> Document:
        """A task's part of the definition."""
        tasks: list[Document] = self.settings.get("tasks", [])
        return next(task for task in tasks if task["task_key"] == key)

    @property
    def continuous(self) -> bool:
        """Whether the job is one that always runs."""
        return "continuous" in self.settings

    def view(self, url: str, *, tasks: bool, only: int | None = None) -> Document:
        """The run as the API tells it; `only` leaves one task in it."""
        told = {
            **self.told(),
            "job_id": self.job_id,
            "job_run_id": self.run_id,
            "original_attempt_run_id": self.run_id,
            "number_in_job": self.number,
            "creator_user_name": self.user,
            "run_name": self.settings.get("name", ""),
            "run_page_url": f"{url}/?o=1#job/{self.job_id}/run/{self.run_id}",
            "run_type": "JOB_RUN",
            "trigger": self.trigger,
            "format": "MULTI_TASK",
        }
        if self.overrides:
            told["overriding_parameters"] = self.overrides
        if tasks:
            told["tasks"] = [
                {**self.definition(task.key), **task.told(), "attempt_number": 0}
                for task in self.tasks
                if only in (None, task.run_id)
            ]
        return told
