"""A bundle for one environment, as a frozen value."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from headrace.config.databricks.job_definitions import Job, Target
from headrace.config.locations import KeyLocations
from headrace.config.models.environment import Environment
from headrace.config.models.pipeline import Pipeline, Step
from headrace.config.value_types import Model, local_path


class Bundle(Model):
    """The content of a bundle's files, for one environment."""

    root: str
    name: str
    pipelines: dict[str, Pipeline]
    environment: Environment
    targets: dict[str, Target] = {}
    jobs: dict[str, tuple[Job, ...]] = Field(default={}, repr=False)  # by target
    locations: dict[str, KeyLocations] = Field(default={}, exclude=True, repr=False)  # by file

    @property
    def run_files_directory(self) -> Path:
        """The directory for events and logs of runs.

        If the environment can be deployed to, return `.headrace` in the first of these directories that has a local
        path: checkpoints, releases, temporary files. Otherwise return `.headrace/<environment>` in the bundle.
        """
        engine = self.environment.engine
        is_deployable = engine.kind == "databricks" or (engine.kind == "spark" and bool(engine.releases))
        if not is_deployable:
            return Path(self.root) / ".headrace" / self.environment.name
        candidates = [self.environment.checkpoints, getattr(engine, "releases", None), tempfile.gettempdir()]
        local_paths = (local_path(candidate) for candidate in candidates if candidate)
        return next(Path(path) / ".headrace" for path in local_paths if path)

    def where(self, pipeline: str, *path: str | int) -> str:
        """Return file:line of a key in a pipeline's file."""
        return self.locations_of(pipeline).where(*path)

    def locations_of(self, pipeline: str) -> KeyLocations:
        """Return the locations of the keys in a pipeline's file."""
        file = f"conf/pipelines/{pipeline}.yml"
        return self.locations.get(file, KeyLocations(file))

    def located_steps(self) -> Iterator[tuple[KeyLocations, Step]]:
        """Yield the steps of all pipelines, each with the locations of the keys in its file."""
        for pipeline in self.pipelines.values():
            for step in pipeline.steps.values():
                yield self.locations_of(pipeline.name), step
