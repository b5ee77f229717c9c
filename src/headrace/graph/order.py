"""Order the steps of a bundle by the tables that they read and write."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import KeyLocations, closest_match
from headrace.config.models import Bundle, Pipeline, Step
from headrace.errors import ConfigurationError


def pipeline_steps(bundle: Bundle, pipeline: str) -> tuple[Step, ...]:
    """Return the steps of a pipeline in the order of the file, but each after the steps whose tables it reads."""
    steps, locations = find_pipeline(bundle, pipeline).steps.values(), bundle.locations_of(pipeline)
    return tuple(step for _, step in _sort((locations, step) for step in steps))


def all_steps(bundle: Bundle) -> list[tuple[KeyLocations, Step]]:
    """Return the steps of all pipelines, each after those whose tables it reads, with the locations of its file."""
    return _sort(bundle.located_steps())


def _sort(located_steps: Iterable[tuple[KeyLocations, Step]]) -> list[tuple[KeyLocations, Step]]:
    waiting, ordered = list(located_steps), []
    while waiting:
        # Loading has ruled out cycles, so there is always a step that reads no table of the other waiting steps.
        pending = {table for _, step in waiting for table in _tables_written(step)}
        ready = next(
            (locations, step)
            for locations, step in waiting
            if not pending & {*_tables_read(step)} - {*_tables_written(step)}
        )
        ordered.append(ready)
        waiting.remove(ready)
    return ordered


def find_pipeline(bundle: Bundle, name: str) -> Pipeline:
    """Return the pipeline of that name. Raise ConfigurationError if there is none."""
    if name not in bundle.pipelines:
        raise ConfigurationError(f"there is no pipeline '{name}'", fix=closest_match(name, bundle.pipelines))
    return bundle.pipelines[name]


def upstream_steps(step: Step, among: Iterable[Step]) -> tuple[str, ...]:
    """Return the names of the other steps whose tables a step reads."""
    return tuple(
        other.name
        for other in among
        if other.name != step.name and set(_tables_written(other)) & set(_tables_read(step))
    )


def tables_read(bundle: Bundle) -> set[str]:
    """Return the names of all tables that the steps of a bundle read."""
    return {table for _, step in bundle.located_steps() for table in _tables_read(step)}


def _tables_written(step: Step) -> tuple[str, ...]:
    return tuple(name for table in step.tables_written for name in (table, f"{table}{QUARANTINE_SUFFIX}"))


def _tables_read(step: Step) -> tuple[str, ...]:
    return tuple(read.table for read in step.reads.values() if read.table is not None)
