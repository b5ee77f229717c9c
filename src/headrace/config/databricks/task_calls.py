"""What the tasks of a job ask of Headrace's entry points: pipeline, environment, steps, values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.wheel_metadata import LAYER_OF, is_ours
from headrace.config.locations import KeyPath
from headrace.config.pipeline_files import Draft

WHEEL = "python_wheel_task"


@dataclass(frozen=True)
class Given:
    """One parameter of a call, and where it is written."""

    name: str
    value: str
    at: KeyPath

    @property
    def is_fixed(self) -> bool:
        """Whether the value is known before the job runs."""
        return not isinstance(self.value, Unresolved) and "{{" not in self.value and "${" not in self.value


@dataclass(frozen=True)
class Call:
    """A task that calls one of our entry points."""

    job: Job
    at: KeyPath  # where the task is written, below the job
    outer: Mapping[str, Any]  # the loop that the task stands in, else the task itself
    task: Mapping[str, Any]
    entry_point: str
    given: tuple[Given, ...]

    @property
    def key(self) -> str:
        """The key of the task, or of the loop that it stands in."""
        return str(self.outer.get("task_key"))

    @property
    def at_once(self) -> int:
        """How many runs of the task there may be at once."""
        loop = self.outer.get("for_each_task") if self.outer is not self.task else None
        count = loop.get("concurrency", 1) if isinstance(loop, dict) else 1
        return count if isinstance(count, int) else 1

    def one(self, name: str) -> Given | None:
        """A parameter that counts once: of several the last."""
        return next((given for given in reversed(self.given) if given.name == name), None)

    def every(self, name: str) -> list[Given]:
        """A parameter that may be given several times."""
        return [given for given in self.given if given.name == name]

    def steps(self, drafts: Mapping[str, Draft]) -> tuple[str, ...]:
        """The steps that the task runs, as far as the files say which."""
        pipeline = self.one("pipeline")
        draft = drafts.get(pipeline.value) if pipeline else None
        if draft is None or self.entry_point not in LAYER_OF:
            return ()
        if asked := self.every("step"):
            return tuple(given.value for given in asked if given.value in draft.names)
        layer = LAYER_OF[self.entry_point]
        return tuple(name for name, step in draft.steps.items() if layer in (None, step.layer))


def calls_of(job: Job) -> list[Call]:
    """The tasks that call our entry points, in the order of the file."""
    outer = dict(job.tasks)
    return [
        Call(job, at, outer[int(at[1])], task, wheel["entry_point"], tuple(_given(wheel, (*at, WHEEL))))
        for at, task in job.work
        if isinstance(wheel := task.get(WHEEL), dict)
        and is_ours(str(wheel.get("package_name", "")))
        and isinstance(wheel.get("entry_point"), str)
    ]


def _given(wheel: Mapping[str, Any], at: KeyPath) -> Iterator[Given]:
    named = wheel.get("named_parameters")
    for name, value in named.items() if isinstance(named, dict) else ():
        yield Given(name, _text(value), (*at, "named_parameters", name))
    texts = wheel.get("parameters")
    waiting: Given | None = None
    for number, text in enumerate(texts if isinstance(texts, list) else []):
        here = (*at, "parameters", number)
        if waiting is not None:
            yield Given(waiting.name, _text(text), here)
            waiting = None
        elif str(text).startswith("--") and "=" not in str(text):
            waiting = Given(str(text)[2:], "", here)
        else:
            name, _, value = str(text).partition("=")
            yield Given(name.removeprefix("--"), value, here)
    if waiting is not None:
        yield waiting


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
