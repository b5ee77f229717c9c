"""Check that no step runs twice at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.config.checks.job_checks import dependencies
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import TaskCall, find_task_calls
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem


def check_writers(jobs: Sequence[Job], drafts: Mapping[str, PipelineDraft]) -> Iterator[Problem]:
    """Yield the tasks that may run a step more than once at the same time, with the same checkpoint.

    The other run of the step may be of another task, or of the same task if a for_each_task runs it in parallel. `jobs`
    are the jobs of one target.
    """
    calls = [call for job in jobs for call in find_task_calls(job)]
    for index, call in enumerate(calls):
        if call.concurrency > 1 and (steps := call.steps(drafts)):
            message = f"runs {_format_steps(steps)} {call.concurrency} times in parallel"
            fix = "remove concurrency: the default is 1"
            yield call.job.problem((*call.path[:3], "concurrency"), message, fix)
        for other in calls[:index]:
            shared = [step for step in call.steps(drafts) if step in other.steps(drafts)]
            if shared and _checkpoint_key(call) == _checkpoint_key(other) and not _are_sequential(call, other):
                is_same_job = call.job.key == other.job.key
                of_job = "" if is_same_job else f" of job '{other.job.key}'"
                message = f"may run {_format_steps(shared)} at the same time as task '{other.key}'{of_job}"
                fix = f"run each step in one task; the other task is at {other.job.where(*other.path)}"
                if is_same_job:
                    fix += f", or add depends_on: [{{task_key: {other.key}}}]"
                yield call.job.problem(call.path, message, fix)


def _checkpoint_key(call: TaskCall) -> tuple[object, ...]:
    """Return the pipeline, environment and values that a call passes.

    If two calls with equal keys run the same step, both use the same checkpoint.
    """
    parameters = [call.parameter(name) for name in ("pipeline", "env")]
    values = sorted(parameter.value for parameter in call.all_parameters("value"))
    return (*(parameter.value if parameter else "" for parameter in parameters), *values)


def _are_sequential(call: TaskCall, other: TaskCall) -> bool:
    """Return whether one of two tasks starts only after the other has ended. Return False for tasks of different jobs.

    Also return True if one of the tasks depends on a task that does not exist. This problem is reported elsewhere.
    """
    if call.job.key != other.job.key:
        return False
    depends_on = dependencies(call.job)

    def all_dependencies(task: str) -> set[str]:
        """Return the keys of all tasks that must end before a task starts."""
        reached: set[str] = set()
        pending = [task]
        while pending:
            new = depends_on.get(pending.pop(), {}).keys() - reached
            reached |= new
            pending += new
        return reached

    before_call, before_other = all_dependencies(call.key), all_dependencies(other.key)
    has_unknown_task = bool((before_call | before_other) - depends_on.keys())
    return call.key in before_other or other.key in before_call or has_unknown_task


def _format_steps(steps: Sequence[str]) -> str:
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(repr(step) for step in steps)}"
