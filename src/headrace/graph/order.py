"""Order the steps of a bundle by the tables that they read and write."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import KeyLocations, closest_match
from headrace.config.models import Bundle, Pipeline, Step
from headrace.errors import ConfigurationError


def pipeline_steps(bundle: Bundle, pipeline: str) -> tuple[Step, ...]:
    """The steps of a pipeline, each after those whose tables it reads; otherwise as in the file."""
    steps, lines = find_pipeline(bundle, pipeline).steps.values(), bundle.locations_of(pipeline)
    return tuple(step for _, step in _sort((lines, step) for step in steps))


def all_steps(bundle: Bundle) -> list[tuple[KeyLocations, Step]]:
    """The steps of all pipelines, each after those whose tables it reads, with the lines of its file."""
    return _sort(bundle.located_steps())


def _sort(located: Iterable[tuple[KeyLocations, Step]]) -> list[tuple[KeyLocations, Step]]:
    waiting, done = list(located), []
    while waiting:
        # Without a cycle, which loading has ruled out, there is always one whose inputs are done.
        to_come = {table for _, step in waiting for table in _tables_written(step)}
        ready = next(one for one in waiting if not to_come & {*_tables_read(one[1])} - {*_tables_written(one[1])})
        done.append(ready)
        waiting.remove(ready)
    return done


def find_pipeline(bundle: Bundle, name: str) -> Pipeline:
    """The pipeline of that name, or the nearest one as the fix."""
    if name not in bundle.pipelines:
        raise ConfigurationError(f"there is no pipeline '{name}'", fix=closest_match(name, bundle.pipelines))
    return bundle.pipelines[name]


def upstream_steps(step: Step, among: Iterable[Step]) -> tuple[str, ...]:
    """The names of the other steps whose tables a step reads."""
    return tuple(
        other.name
        for other in among
        if other.name != step.name and set(_tables_written(other)) & set(_tables_read(step))
    )


def tables_read(bundle: Bundle) -> set[str]:
    """The names of all tables that some step of the bundle reads."""
    return {table for _, step in bundle.located_steps() for table in _tables_read(step)}


def _tables_written(step: Step) -> tuple[str, ...]:
    return tuple(name for table in step.tables_written for name in (table, f"{table}{QUARANTINE_SUFFIX}"))


def _tables_read(step: Step) -> tuple[str, ...]:
    return tuple(read.table for read in step.reads.values() if read.table is not None)
