"""The current checkpoint of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.checkpoints.checkpoint_files import CheckpointFiles, open_files
from headrace.checkpoints.generations import Generation, read_generation
from headrace.checkpoints.layout import spark_directory, step_directory
from headrace.checkpoints.pairing import Writer
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


def open_checkpoint(bundle: Bundle, pipeline: str, step: str, spark: SparkSession | None = None) -> StepCheckpoint:
    """Return the current checkpoint of a step. Without a session, it must be on this machine's disk."""
    files = open_files(step_directory(bundle.environment, pipeline, step), spark)
    generation = read_generation(files)
    directory = spark_directory(bundle.environment, pipeline, step, generation.number)
    return StepCheckpoint(files, generation, directory, Writer(bundle.name, pipeline, step, generation.number, ""))
