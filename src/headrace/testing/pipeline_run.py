"""Run a whole pipeline in a temporary directory as `headrace run` does, and read its tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config.expectation_scope import QUARANTINE_SUFFIX
from headrace.config.load import load_bundle
from headrace.config.models import Bundle, FileSource, Source, Tables
from headrace.errors import ConfigurationError
from headrace.io.delta.delta_table import table_of
from headrace.runtime.events import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class PipelineRun:
    """The result of a run: its tables and all of its events."""

    spark: SparkSession = field(repr=False)
    bundle: Bundle = field(repr=False)
    events: tuple[Event, ...] = field(repr=False)

    def table(self, name: str) -> DataFrame:
        """Return a table as a DataFrame. It is read only when it is used, so it may include rows of later runs."""
        return table_of(self.bundle.environment, name).read(self.spark)

    def rows(self, name: str) -> list[Row]:
        """Return all rows of a table."""
        return self.table(name).collect()

    def quarantine(self, name: str) -> list[Row]:
        """Return the rows of the quarantine table `<name>_quarantine`; empty if this table does not exist."""
        table = table_of(self.bundle.environment, name + QUARANTINE_SUFFIX)
        return table.read(self.spark).collect() if table.exists(self.spark) else []

    def total(self, step: str, count: str) -> int:
        """Return the sum over the batches of a step. `count` is a field of Event, such as `rows` or `duplicates`.

        For a field with a number for each rule, such as `quarantined`, return the sum over the rules.
        """
        counts = [getattr(event, count) for event in self.events if event.step == step and event.what == "batch"]
        return sum(sum(each.values()) if isinstance(each, dict) else each for each in counts)


def relocate(bundle: Bundle, directory: Path, sources: Mapping[str, Path | Source] | None = None) -> Bundle:
    """Return the bundle with its tables, checkpoints and folders in `directory`, which becomes the bundle's root.

    `sources` replaces sources by name: a path replaces only the path of a file source; a Source replaces the whole
    definition. Raise ConfigurationError for a path if the source is not a file source.
    """
    environment = bundle.environment
    new_sources = dict(environment.sources)
    for name, source in (sources or {}).items():
        current = new_sources.get(name)
        if not isinstance(source, Path):
            new_sources[name] = source
        elif isinstance(current, FileSource):
            new_sources[name] = current.model_copy(update={"path": str(source)})
        else:
            raise ConfigurationError(
                f"source {name!r} is not a file source, so it cannot be replaced by a path",
                fix="pass a source definition instead of a path",
            )
    new_environment = environment.model_copy(
        update={
            "tables": Tables(root=str(directory / "tables")),
            "checkpoints": str(directory / "checkpoints"),
            "folders": {name: str(directory / "folders" / name) for name in environment.folders},
            "sources": new_sources,
        }
    )
    return bundle.model_copy(update={"environment": new_environment, "root": str(directory)})


def run_pipeline(
    spark: SparkSession,
    root: Path,
    pipeline: str,
    directory: Path,
    *,
    environment: str = "local",
    sources: Mapping[str, Path | Source] | None = None,
    values: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
) -> PipelineRun:
    """Run a pipeline of the bundle in `root` until it has processed all available data.

    Tables, checkpoints and folders are in `directory`; another run with the same directory processes new data only.
    Topics are not replaced: their rows are sent to the servers that the environment names. `sources` replaces sources
    by name: a path replaces only the path of a file source; a Source replaces the whole definition. `values` are the
    values that the environment requires. `only` names the steps to run; if it is empty, all steps run.
    """
    from headrace.runtime import runner
    from headrace.runtime.announced_run import announce_run

    code_directory = str(root / "src")
    if code_directory not in sys.path:
        sys.path.insert(0, code_directory)
    bundle = relocate(load_bundle(root, environment, values), directory, sources)
    events: list[Event] = []
    with announce_run(bundle, pipeline, watch=events.append) as announced:
        runner.run(spark, bundle, pipeline, announced=announced, only=only, once=True)
    return PipelineRun(spark, bundle, tuple(events))
