"""Order the steps of a bundle by the tables that they read and write."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.locations import KeyLocations, fix_for_unknown_name
from headrace.config.models import Bundle, Pipeline, Step
from headrace.errors import ConfigurationError


def pipeline_steps(bundle: Bundle, pipeline: str) -> tuple[Step, ...]:
    """Return a pipeline's steps in the order of the file, except that a step follows the steps whose tables it reads.

    Raise ConfigurationError if the bundle has no such pipeline.
    """
    steps, locations = find_pipeline(bundle, pipeline).steps.values(), bundle.locations_of(pipeline)
    return tuple(step for _, step in _sort_by_reads((locations, step) for step in steps))


def select_steps(bundle: Bundle, pipeline: str, only: Collection[str]) -> list[Step]:
    """Return the steps of a pipeline that `only` names, in the order in which they start; all steps if `only` is empty.

    Raise ConfigurationError if the pipeline does not have one of the named steps.
    """
    steps = pipeline_steps(bundle, pipeline)
    names = [step.name for step in steps]
    for name in only:
        if name not in names:
            raise ConfigurationError(
                f"pipeline {pipeline!r} has no step {name!r}", fix=fix_for_unknown_name(name, names)
            )
    return [step for step in steps if not only or step.name in only]


def all_steps(bundle: Bundle) -> list[tuple[KeyLocations, Step]]:
    """Return the steps of all pipelines, each with the locations of the keys in its file.

    The order is that of the files, except that a step follows the steps whose tables it reads.
    """
    return _sort_by_reads(bundle.located_steps())


def _sort_by_reads(located_steps: Iterable[tuple[KeyLocations, Step]]) -> list[tuple[KeyLocations, Step]]:
    """Return the steps in the given order, except that a step follows the steps whose tables it reads."""
    waiting, ordered = list(located_steps), []
    while waiting:
        # Loading has ruled out cycles, so there is always a step that reads no table of the other waiting steps.
        tables_of_waiting = {table for _, step in waiting for table in _tables_and_quarantines(step)}
        ready = next(located for located in waiting if not _tables_only_read(located[1]) & tables_of_waiting)
        ordered.append(ready)
        waiting.remove(ready)
    return ordered


def find_pipeline(bundle: Bundle, name: str) -> Pipeline:
    """Return the pipeline with a name. Raise ConfigurationError if the bundle has no such pipeline."""
    if name not in bundle.pipelines:
        raise ConfigurationError(f"there is no pipeline '{name}'", fix=fix_for_unknown_name(name, bundle.pipelines))
    return bundle.pipelines[name]


def upstream_steps(step: Step, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the names of those `steps`, other than the step itself, whose tables the step reads."""
    tables = set(_tables_read(step))
    return tuple(
        other.name for other in steps if other.name != step.name and tables & set(_tables_and_quarantines(other))
    )


def tables_read(bundle: Bundle) -> set[str]:
    """Return the names of all tables that the steps of a bundle read."""
    return {table for _, step in bundle.located_steps() for table in _tables_read(step)}


def _tables_and_quarantines(step: Step) -> tuple[str, ...]:
    """Return the names of the tables that a step writes, and the names that their quarantines would have."""
    return tuple(name for table in step.tables_written for name in (table, f"{table}{QUARANTINE_SUFFIX}"))


def _tables_read(step: Step) -> tuple[str, ...]:
    return tuple(read.table for read in step.reads.values() if read.table is not None)


def _tables_only_read(step: Step) -> set[str]:
    """Return the tables that a step reads but does not write."""
    return set(_tables_read(step)) - set(_tables_and_quarantines(step))
