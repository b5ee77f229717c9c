"""Runs a whole pipeline in a temporary directory, as `headrace run` does, and gives its tables back."""

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
    """What a run left behind: its tables, and what its batches told."""

    spark: SparkSession
    bundle: Bundle
    events: tuple[Event, ...]

    def table(self, name: str) -> DataFrame:
        """A table as it is after the run."""
        return table_of(self.bundle.environment, name).read(self.spark)

    def rows(self, name: str) -> list[Row]:
        """All rows of a table."""
        return self.table(name).collect()

    def quarantine(self, name: str) -> list[Row]:
        """The rows that the table's step refused; its table is made with the first of them."""
        table = table_of(self.bundle.environment, name + QUARANTINE_SUFFIX)
        return table.read(self.spark).collect() if table.exists(self.spark) else []

    def total(self, step: str, what: str) -> int:
        """The sum of one count, like `rows`, `late` or `duplicates`, over the step's batches."""
        return sum(getattr(event, what) for event in self.events if event.step == step and event.what == "batch")


@dataclass(frozen=True)
class Places:
    """Where a test's run reads and writes: everything under one directory, some sources elsewhere."""

    directory: Path
    sources: Mapping[str, Path | Source] = field(default_factory=dict)

    def put(self, bundle: Bundle) -> Bundle:
        """The bundle, moved to these places."""
        environment = bundle.environment
        sources = dict(environment.sources)
        for name, place in self.sources.items():
            known = sources.get(name)
            if not isinstance(place, Path):
                sources[name] = place
            elif isinstance(known, FileSource):
                sources[name] = known.model_copy(update={"path": str(place)})
            else:
                raise ConfigurationError(
                    f"source {name!r} is not one of files", fix="give a source of your own instead of a path"
                )
        moved = environment.model_copy(
            update={
                "tables": Tables(root=str(self.directory / "tables")),
                "checkpoints": str(self.directory / "checkpoints"),
                "folders": {name: str(self.directory / "folders" / name) for name in environment.folders},
                "sources": sources,
            }
        )
        return bundle.model_copy(update={"environment": moved, "root": str(self.directory)})


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
    """Runs the pipeline over what its sources hold; run it again in the same directory for what has come since.

    Tables, checkpoints and folders lie in the directory; topics are written where the environment says.
    """
    from headrace.runtime import runner

    code = str(root / "src")
    if code not in sys.path:
        sys.path.insert(0, code)
    bundle = Places(directory, sources or {}).put(load_bundle(root, environment, values))
    events: list[Event] = []
    with runner.announce_run(bundle, pipeline, watch=events.append) as announced:
        runner.run(spark, bundle, pipeline, announced=announced, only=only, once=True)
    return PipelineRun(spark, bundle, tuple(events))
