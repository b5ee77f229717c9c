"""Steps against one environment: whether each name has a place there, and rows can be judged."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.config.checks.encoding_checks import check_encodings
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.expectation_scope import can_check_rows, checks_source_rows, has_quarantine
from headrace.config.locations import closest_match
from headrace.config.models import Environment, FileSource, KafkaSource, Read, Step
from headrace.config.pipeline_files import Draft
from headrace.errors import Problem

WITHOUT_SCHEMA = ("text", "bytes", "binaryFile")


def check_places(drafts: list[Draft], environment: EnvironmentDraft) -> list[Problem]:
    """The problems that lie between the pipelines and one environment."""
    if not environment.raw:
        return []
    problems = list(_triggers(drafts, environment))
    for draft in drafts:
        for step in draft.steps.values():
            problems += _names(draft, step, environment)
            if environment.environment is not None:
                problems += _schemas(draft, step, environment.environment)
                problems += check_encodings(draft, step, environment)
                problems += _judging(draft, step, environment.environment)
    return problems


def _names(draft: Draft, step: Step, environment: EnvironmentDraft) -> Iterator[Problem]:
    for name, read in step.reads.items():
        if read.source is not None:
            yield from _known(draft, step, environment, read.source, ("reads", name, "source"))
    for at, sink in enumerate(step.writes):
        for kind in ("topic", "folder"):
            place = getattr(sink, kind)
            if place is not None:
                yield from _known(draft, step, environment, place, ("writes", at, kind))


def _known(
    draft: Draft, step: Step, environment: EnvironmentDraft, name: str, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    kind = str(path[-1])
    known = environment.names(f"{kind}s")
    if name not in known:
        does = "reads" if path[0] == "reads" else "writes to"
        message = f"step '{step.name}' {does} unknown {kind} '{name}' (environment '{environment.name}')"
        fix = closest_match(name, known, f"add it to {environment.locations.file}: {kind}s: {{{name}: …}}")
        yield Problem(draft.locations.where("steps", step.name, *path), message, fix)


def _triggers(drafts: list[Draft], environment: EnvironmentDraft) -> Iterator[Problem]:
    known = {name for draft in drafts for name in draft.names}
    for name in environment.names("triggers"):
        if name not in known and not any(draft.is_incomplete for draft in drafts):
            where = environment.locations.where("triggers", name)
            yield Problem(where, f"triggers: unknown step '{name}'", closest_match(name, known))


def _schemas(draft: Draft, step: Step, environment: Environment) -> Iterator[Problem]:
    for name, read in step.reads.items():
        source = environment.sources.get(read.source or "")
        where = draft.locations.where("steps", step.name, "reads", name)
        told = f"step '{step.name}', input '{name}': "
        if isinstance(source, KafkaSource) and read.infer:
            message = f"{told}a schema cannot be inferred from Kafka (environment '{environment.name}')"
            yield Problem(where, message, "give one: schema: module:NAME")
        elif _lacks_schema(read, source):
            message = f"{told}source '{read.source}' needs a schema (environment '{environment.name}')"
            fix = "give one: schema: module:NAME"
            yield Problem(where, message, f"{fix}, or infer: true" if isinstance(source, FileSource) else fix)


def _lacks_schema(read: Read, source: object) -> bool:
    if read.schema_ is not None or read.infer or not isinstance(source, FileSource | KafkaSource):
        return False
    return source.format not in WITHOUT_SCHEMA


def _judging(draft: Draft, step: Step, environment: Environment) -> Iterator[Problem]:
    for name, read in step.reads.items():
        if checks_source_rows(read, environment) and not can_check_rows(step):
            where = draft.locations.where("steps", step.name, "reads", name)
            told = f"step '{step.name}', input '{name}': its rows cannot be judged"
            fix = "land the source in a bronze step first"
            if sum(not other.static for other in step.reads.values()) > 1:
                message = f"{told} in a step with several streams"
            else:
                message = f"{told} before this transform"
                fix = f"{fix}, or write row_wise: true if the transform looks at one row alone"
            yield Problem(where, message, fix)
    if not step.tables_written and has_quarantine(step, environment):
        where = draft.locations.where("steps", step.name, "writes")
        message = f"step '{step.name}' puts bad rows into quarantine, but writes no table that they belong to"
        yield Problem(where, message, "write a table too, or land the source in a bronze step first")
