"""A bundle as a frozen value: all that its files say, for one environment."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.locations import KeyLocations
from headrace.config.models.environment import Environment
from headrace.config.models.pipeline import Pipeline, Step
from headrace.config.models.value_types import Model, local_path


class Bundle(Model):
    """Everything that the files of one bundle say, for one environment."""

    root: str
    name: str
    pipelines: dict[str, Pipeline]
    environment: Environment
    targets: dict[str, Target] = {}
    jobs: dict[str, tuple[Job, ...]] = Field(default={}, repr=False)  # by target
    locations: dict[str, KeyLocations] = Field(default={}, exclude=True, repr=False)

    @property
    def directory(self) -> Path:
        """Where runs keep events and logs: in the bundle; beside the checkpoints where that is a release."""
        engine = self.environment.engine
        if engine.kind == "databricks" or (engine.kind == "spark" and engine.releases):
            places = [self.environment.checkpoints, getattr(engine, "releases", None), tempfile.gettempdir()]
            return next(Path(local_path(place)) / ".headrace" for place in places if place and local_path(place))
        return Path(self.root) / ".headrace" / self.environment.name

    def where(self, pipeline: str, *path: str | int) -> str:
        """file:line of a key of a pipeline's file."""
        return self.locations_of(pipeline).where(*path)

    def locations_of(self, pipeline: str) -> KeyLocations:
        """The lines of a pipeline's file."""
        file = f"conf/pipelines/{pipeline}.yml"
        return self.locations.get(file, KeyLocations(file))

    def located_steps(self) -> Iterator[tuple[KeyLocations, Step]]:
        """All steps of all pipelines, each with the lines of its file."""
        for pipeline in self.pipelines.values():
            for step in pipeline.steps.values():
                yield self.locations_of(pipeline.name), step
