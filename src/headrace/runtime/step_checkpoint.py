"""The current checkpoint of a step, and the queries of all checkpoints of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.checkpoints.checkpoint_files import CheckpointFiles, open_files
from headrace.checkpoints.generations import Generation, read_generation
from headrace.checkpoints.layout import spark_directory, step_directory
from headrace.checkpoints.pairing import Writer
from headrace.checkpoints.spark_checkpoint import SparkCheckpoint, read_checkpoint
from headrace.checkpoints.step_record import StepRecord, read_record
from headrace.config.models import Bundle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StepCheckpoint:
    """The current checkpoint of one step."""

    files: CheckpointFiles  # of the step's directory
    generation: Generation
    spark_directory: str
    writer: Writer  # the step, as the properties of its tables name it

    def read(self) -> SparkCheckpoint:
        """Return what Spark has written into the checkpoint."""
        return read_checkpoint(self.files, f"{self.generation.number}/spark")

    def read_record(self) -> StepRecord | None:
        """Return the record of the step's last start with this checkpoint; None if there was none."""
        return read_record(self.files, self.generation.number)


def open_checkpoint(bundle: Bundle, pipeline: str, step: str, spark: SparkSession | None = None) -> StepCheckpoint:
    """Return the current checkpoint of a step. Without a session, it must be on this machine's disk."""
    files = open_files(step_directory(bundle.environment, pipeline, step), spark)
    generation = read_generation(files)
    directory = spark_directory(bundle.environment, pipeline, step, generation.number)
    return StepCheckpoint(files, generation, directory, Writer(bundle.name, pipeline, step, generation.number, ""))


def all_queries(bundle: Bundle, spark: SparkSession) -> dict[str, Writer]:
    """Return the steps that have checkpoints in this environment, by the ids of the checkpoints' queries."""
    queries = {}
    files = open_files(bundle.environment.checkpoints, spark)
    for pipeline in files.sizes():
        for step in files.sizes(pipeline):
            for generation in filter(str.isdigit, files.sizes(f"{pipeline}/{step}")):
                query = read_checkpoint(files, f"{pipeline}/{step}/{generation}/spark").query_id
                queries[query] = Writer(bundle.name, pipeline, step, int(generation), "")
    return queries
