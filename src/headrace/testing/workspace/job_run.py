"""A run of a job and its tasks: its stored record and its representation in the API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from headrace.testing.workspace.http_messages import Document

ACTIVE_STATES = ("QUEUED", "PENDING", "RUNNING", "TERMINATING")
ENDED_STATES = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")
# For each result, the code and the type of `termination_details` in the `status` object.
TERMINATION_DETAILS: Mapping[str, tuple[str, str]] = {
    "SUCCESS": ("SUCCESS", "SUCCESS"),
    "CANCELED": ("USER_CANCELED", "SUCCESS"),
    "FAILED": ("RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
    "UPSTREAM_FAILED": ("SKIPPED", "CLIENT_ERROR"),
    "EXCLUDED": ("SKIPPED", "SUCCESS"),
    "MAXIMUM_CONCURRENT_RUNS_REACHED": ("MAX_CONCURRENT_RUNS_EXCEEDED", "CLIENT_ERROR"),
    "": ("INTERNAL_ERROR", "INTERNAL_ERROR"),  # a run with an internal error has no result
}


def now_ms() -> int:
    """Return the current time in milliseconds since 1970, the unit of the API."""
    return int(time.time() * 1000)


# The field names of the following classes are the keys of the JSON files in the workspace's directory.
@dataclass
class RunState:
    """The state of a run or a task: its life-cycle state (`phase`), and its result once it has ended.

    `start` and `end` are in milliseconds since 1970; `end` is 0 until the run or task has ended.
    """

    run_id: int
    phase: str = "PENDING"
    result: str = ""
    message: str = ""
    start: int = field(default_factory=now_ms)
    end: int = 0

    @property
    def is_active(self) -> bool:
        """Whether the run or task has not ended."""
        return self.phase in ACTIVE_STATES

    def finish(self, result: str, message: str = "", phase: str = "TERMINATED") -> None:
        """Set the last phase, the result with its message, and the end time."""
        self.phase, self.result, self.message, self.end = phase, result, message, now_ms()

    def state_document(self) -> Document:
        """Return the state, status and times in the format of the API."""
        state: Document = {"life_cycle_state": self.phase, "state_message": self.message}
        status: Document = {"state": "TERMINATED" if self.phase in ENDED_STATES else self.phase}
        if self.result:
            state |= {"result_state": self.result, "user_cancelled_or_timedout": self.result == "CANCELED"}
        if self.phase in ENDED_STATES:
            code, termination_type = TERMINATION_DETAILS[self.result]
            status["termination_details"] = {"code": code, "type": termination_type, "message": self.message}
        if self.phase == "QUEUED":
            reason = "Queued due to reaching maximum concurrent runs of the job."
            state["queue_reason"] = reason
            status["queue_details"] = {"code": "MAX_CONCURRENT_RUNS_REACHED", "message": reason}
        times = {"end_time": self.end, "run_duration": self.end - self.start} if self.end else {}
        return {"run_id": self.run_id, "state": state, "status": status, "start_time": self.start, **times}


@dataclass
class TaskRun(RunState):
    """One task of a run, with its error and traceback if it failed."""

    key: str = ""
    error: str = ""
    trace: str = ""


@dataclass
class Run(RunState):
    """One run; `settings` is the definition of the job when the run was created.

    `number` counts the runs of the job from 1. `token` is the idempotency token of run-now, and `overrides` are the
    parameters that run-now sets for this run only.
    """

    job_id: int = 0
    number: int = 1
    user: str = ""
    trigger: str = "ONE_TIME"
    token: str = ""
    settings: Document = field(default_factory=dict)
    overrides: Document = field(default_factory=dict)
    tasks: list[TaskRun] = field(default_factory=list)

    @classmethod
    def from_record(cls, record: Document) -> Run:
        """Return the run of a stored record."""
        return cls(**{**record, "tasks": [TaskRun(**task) for task in record["tasks"]]})

    def to_record(self) -> Document:
        """Return the record to store."""
        return asdict(self)

    def task_definition(self, key: str) -> Document:
        """Return the definition of a task."""
        tasks: list[Document] = self.settings.get("tasks", [])
        return next(task for task in tasks if task["task_key"] == key)

    @property
    def is_continuous(self) -> bool:
        """Whether this is a run of a continuous job."""
        return "continuous" in self.settings

    def api_document(self, url: str, *, with_tasks: bool, task_run_id: int | None = None) -> Document:
        """Return the run in the format of the API.

        `with_tasks` adds all tasks, or if `task_run_id` is set, only the task with this run id; without `with_tasks`,
        the tasks are left out. `url` is that of the workspace.
        """
        document = {
            **self.state_document(),
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
            document["overriding_parameters"] = self.overrides
        if with_tasks:
            document["tasks"] = [
                {**self.task_definition(task.key), **task.state_document(), "attempt_number": 0}
                for task in self.tasks
                if task_run_id in (None, task.run_id)
            ]
        return document
