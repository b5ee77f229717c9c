"""Find the tasks of a job that call entry points of Headrace's package, and the parameters of these calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.wheel_metadata import ENTRY_POINT_LAYERS, is_headrace
from headrace.config.locations import KeyPath

if TYPE_CHECKING:
    from headrace.config.pipeline_files import PipelineDraft

WHEEL_TASK = "python_wheel_task"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a call, with the key path of its value."""

    name: str
    value: str
    path: KeyPath

    @property
    def is_static(self) -> bool:
        """Whether the value is known before the job runs: it has no reference of a bundle (${…}) or a job ({{…}})."""
        return not isinstance(self.value, Unresolved) and "{{" not in self.value and "${" not in self.value


@dataclass(frozen=True)
class TaskCall:
    """A task that calls an entry point of Headrace's package, which may have no entry point of this name."""

    job: Job
    path: KeyPath  # the key path of the task in the job
    outer_task: Mapping[str, Any]  # the task with the for_each_task that contains `task`; otherwise `task` itself
    task: Mapping[str, Any]
    entry_point: str
    parameters: tuple[Parameter, ...]

    @property
    def key(self) -> str:
        """The task_key of `outer_task`, which other tasks of the job can depend on."""
        return str(self.outer_task.get("task_key"))

    @property
    def concurrency(self) -> int:
        """How many runs of the task a for_each_task may start at the same time; 1 if the task is not inside one."""
        loop = self.outer_task.get("for_each_task") if self.outer_task is not self.task else None
        concurrency = loop.get("concurrency", 1) if isinstance(loop, dict) else 1
        return concurrency if isinstance(concurrency, int) else 1

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with a name; None if the call does not pass it.

        If the call passes the parameter several times, return the last one, as argparse does.
        """
        return next((parameter for parameter in reversed(self.parameters) if parameter.name == name), None)

    def all_parameters(self, name: str) -> list[Parameter]:
        """Return all parameters with a name, such as `step` and `value`, which may be passed several times."""
        return [parameter for parameter in self.parameters if parameter.name == name]

    def steps(self, drafts: Mapping[str, PipelineDraft]) -> tuple[str, ...]:
        """Return the names of the steps that the task runs, as far as the bundle's files determine them.

        Return an empty tuple if the pipeline or the entry point is unknown. If the call selects steps, omit those that
        do not exist. Otherwise return the valid steps of the entry point's layer.
        """
        pipeline = self.parameter("pipeline")
        draft = drafts.get(pipeline.value) if pipeline else None
        if draft is None or self.entry_point not in ENTRY_POINT_LAYERS:
            return ()
        if selected := self.all_parameters("step"):
            return tuple(parameter.value for parameter in selected if parameter.value in draft.step_names)
        layer = ENTRY_POINT_LAYERS[self.entry_point]
        return tuple(name for name, step in draft.steps.items() if layer in (None, step.layer))


def find_task_calls(job: Job) -> list[TaskCall]:
    """Return the calls of entry points of Headrace's package, in the order of the file."""
    outer_tasks = dict(job.tasks)
    calls: list[TaskCall] = []
    for path, task in job.runnable_tasks:
        wheel_task = task.get(WHEEL_TASK)
        if not isinstance(wheel_task, dict) or not is_headrace(str(wheel_task.get("package_name", ""))):
            continue
        entry_point = wheel_task.get("entry_point")
        if isinstance(entry_point, str):
            parameters = tuple(_parameters(wheel_task, (*path, WHEEL_TASK)))
            calls.append(TaskCall(job, path, outer_tasks[int(path[1])], task, entry_point, parameters))
    return calls


def _parameters(wheel_task: Mapping[str, Any], path: KeyPath) -> Iterator[Parameter]:
    """Yield the parameters of a python_wheel_task, whose key path is `path`.

    `named_parameters` is a mapping. `parameters` is a list of command-line arguments: "--name=value", or "--name" and
    "value". A parameter without a value has the value "".
    """
    named = wheel_task.get("named_parameters")
    for name, value in named.items() if isinstance(named, dict) else ():
        yield Parameter(name, _to_text(value), (*path, "named_parameters", name))
    arguments = wheel_task.get("parameters")
    pending: Parameter | None = None  # an option whose value is the next argument
    for index, argument in enumerate(arguments if isinstance(arguments, list) else []):
        argument_path = (*path, "parameters", index)
        if pending is not None:
            yield Parameter(pending.name, _to_text(argument), argument_path)
            pending = None
        elif str(argument).startswith("--") and "=" not in str(argument):
            pending = Parameter(str(argument)[2:], "", argument_path)
        else:
            name, _, value = str(argument).partition("=")
            yield Parameter(name.removeprefix("--"), value, argument_path)
    if pending is not None:
        yield pending


def _to_text(value: Any) -> str:
    """Return the value as text. A string is returned unchanged, because it may be `Unresolved`."""
    return value if isinstance(value, str) else str(value)
