"""Check the steps together with one environment: names, schemas, encodings, triggers and expectations."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.config.checks.encoding_checks import check_encodings
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.expectation_scope import can_check_rows, checks_source_rows, has_quarantine
from headrace.config.kinds.sinks import SINKS
from headrace.config.locations import fix_for_unknown_name
from headrace.config.models import Environment, Step
from headrace.config.pipeline_files import PipelineDraft
from headrace.errors import Problem


def check_steps_in_environment(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> list[Problem]:
    """Return the problems that the steps of all pipelines have in one environment.

    Return no problems if the environment's file could not be read. If the environment is invalid, check only names.
    """
    if not environment.raw:
        return []
    problems = list(_check_triggers(drafts, environment))
    for draft in drafts:
        for step in draft.steps.values():
            problems += _check_location_names(draft, step, environment)
            if environment.environment is not None:
                problems += _check_schemas(draft, step, environment.environment)
                problems += check_encodings(draft, step, environment)
                problems += _check_expectations(draft, step, environment.environment)
    return problems


def _check_location_names(draft: PipelineDraft, step: Step, environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield the names of sources, topics and folders for which the environment gives no location."""
    for name, read in step.reads.items():
        if read.source is not None:
            yield from _check_location_name(draft, step, environment, read.source, ("reads", name, "source"))
    for index, sink in enumerate(step.writes):
        for kind, model in SINKS.items():
            if model.is_located and getattr(sink, kind) is not None:
                yield from _check_location_name(draft, step, environment, getattr(sink, kind), ("writes", index, kind))


def _check_location_name(
    draft: PipelineDraft, step: Step, environment: EnvironmentDraft, name: str, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield a problem if the environment does not have the name.

    `path` is the key path of the name in the step. Its last key, such as `source`, is the kind of the name.
    """
    kind = str(path[-1])
    known = environment.names(f"{kind}s")
    if name not in known:
        verb = "reads" if path[0] == "reads" else "writes to"
        message = f"step '{step.name}' {verb} unknown {kind} '{name}' (environment '{environment.name}')"
        fix = fix_for_unknown_name(name, known, f"add it to {environment.locations.file}: {kind}s: {{{name}: …}}")
        yield Problem(draft.locations.where("steps", step.name, *path), message, fix)


def _check_triggers(drafts: list[PipelineDraft], environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield the unknown steps under `triggers`, unless a pipeline file that was not read completely may define them."""
    known = {name for draft in drafts for name in draft.step_names}
    for name in environment.names("triggers"):
        if name not in known and not any(draft.is_incomplete for draft in drafts):
            where = environment.locations.where("triggers", name)
            yield Problem(where, f"triggers: unknown step '{name}'", fix_for_unknown_name(name, known))


def _check_schemas(draft: PipelineDraft, step: Step, environment: Environment) -> Iterator[Problem]:
    """Yield the inputs that lack a schema, and those that infer it from a source that does not support this."""
    for name, read in step.reads.items():
        source = environment.sources.get(read.source or "")
        where = draft.locations.where("steps", step.name, "reads", name)
        subject = f"step '{step.name}', input '{name}'"
        fix = "declare one: schema: module:NAME"
        if source is None:  # the input is a table, or an unknown source
            continue
        if read.infer and not source.infers_schema:
            message = f"{subject}: source '{read.source}' cannot infer a schema (environment '{environment.name}')"
            yield Problem(where, message, fix)
        elif source.needs_schema and read.schema_ is None and not read.infer:
            message = f"{subject}: source '{read.source}' needs a schema (environment '{environment.name}')"
            yield Problem(where, message, f"{fix}, or infer: true" if source.infers_schema else fix)


def _check_expectations(draft: PipelineDraft, step: Step, environment: Environment) -> Iterator[Problem]:
    """Yield the inputs whose rows must be checked but cannot be, and quarantines of steps that write no table."""
    has_several_streams = sum(not read.static for read in step.reads.values()) > 1
    for name, read in step.reads.items():
        if checks_source_rows(read, environment) and not can_check_rows(step):
            where = draft.locations.where("steps", step.name, "reads", name)
            subject = f"step '{step.name}', input '{name}': its rows cannot be checked"
            fix = "load the source in a separate bronze step"
            if has_several_streams:
                message = f"{subject} in a step with several streams"
            else:
                message = f"{subject} before this transform"
                fix = f"{fix}, or write row_wise: true if the transform handles each row on its own"
            yield Problem(where, message, fix)
    if not step.tables_written and has_quarantine(step, environment):
        where = draft.locations.where("steps", step.name, "writes")
        message = f"step '{step.name}' quarantines rows, but writes no table to which the quarantine could belong"
        yield Problem(where, message, "write a table too, or load the source in a separate bronze step")
