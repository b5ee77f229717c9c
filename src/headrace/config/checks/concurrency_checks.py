"""Who runs which step: no step by two tasks at once, and none serverless that would never end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.config.checks.cluster_checks import is_serverless
from headrace.config.checks.job_checks import waits
from headrace.config.databricks.job_definitions import Job
from headrace.config.databricks.task_calls import Call, calls_of
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.models import Trigger
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

ENDING = ("available_now", "once")


def check_writers(jobs: Sequence[Job], drafts: Mapping[str, Draft]) -> Iterator[Problem]:
    """The steps that two tasks of one target may run at once: two writers on one checkpoint."""
    calls = [call for job in jobs for call in calls_of(job)]
    for number, call in enumerate(calls):
        if call.at_once > 1 and (steps := call.steps(drafts)):
            message = f"runs {_words_of(steps)} {call.at_once} times at once"
            yield call.job.problem((*call.at[:3], "concurrency"), message, "take concurrency out: it is 1 by itself")
        for other in calls[:number]:
            both = [step for step in call.steps(drafts) if step in other.steps(drafts)]
            if both and _place(call) == _place(other) and not _one_after_the_other(call, other):
                same = call.job.key == other.job.key
                message = f"runs {_words_of(both)} at once with task '{other.key}'" + (
                    "" if same else f" of job '{other.job.key}'"
                )
                fix = f"run a step in one task; the other is at {other.job.where(*other.at)}"
                if same:
                    fix += f", or add depends_on: [{{task_key: {other.key}}}]"
                yield call.job.problem(call.at, message, fix)


def check_serverless(job: Job, drafts: Mapping[str, Draft], environment: EnvironmentDraft | None) -> Iterator[Problem]:
    """The serverless tasks whose triggers do not end: serverless allows available_now and once only."""
    for at, task in job.work:
        if is_serverless(task) and "continuous" in job.body:
            fix = "give the job a schedule, or the task a cluster"
            told = "runs serverless, but the job is continuous"
            yield job.problem(at, told, fix)
    if environment is None or environment.environment is None:
        return
    for call in calls_of(job):
        if not is_serverless(call.task):
            continue
        for step in call.steps(drafts):
            trigger = environment.environment.trigger_of(step)
            if trigger not in ENDING:
                own = ("triggers", step) if step in environment.environment.triggers else ("trigger",)
                message = f"runs step '{step}' serverless, which does not allow the trigger {_words(trigger)}"
                fix = f"write available_now at {environment.locations.where(*own)}, or give the task a cluster"
                yield job.problem(call.at, message, fix)


def _place(call: Call) -> tuple[object, ...]:
    """What tells checkpoints apart: pipeline, environment and its values."""
    single = [call.one(name) for name in ("pipeline", "env")]
    values = sorted(given.value for given in call.every("value"))
    return (*(given.value if given else "" for given in single), *values)


def _one_after_the_other(call: Call, other: Call) -> bool:
    if call.job.key != other.job.key:
        return False
    found = waits(call.job)

    def before(task: str) -> set[str]:
        """All tasks that must have ended when this one starts."""
        reached: set[str] = set()
        ahead = [task]
        while ahead:
            new = found.get(ahead.pop(), {}).keys() - reached
            reached |= new
            ahead += new
        return reached

    return call.key in before(other.key) or other.key in before(call.key)


def _words_of(steps: Sequence[str]) -> str:
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(repr(step) for step in steps)}"


def _words(trigger: Trigger) -> str:
    return f"'{trigger}'" if isinstance(trigger, str) else f"'every: {trigger.every}'"
