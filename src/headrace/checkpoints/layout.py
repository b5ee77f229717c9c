"""Checkpoint directories. Users configure their root; the rest is derived from pipeline, step and generation."""

from __future__ import annotations

from headrace.config.models import Environment


def step_directory(environment: Environment, pipeline: str, step: str) -> str:
    """Return the directory with all checkpoint generations of a step."""
    return f"{environment.checkpoints.rstrip('/')}/{pipeline}/{step}"


def spark_directory(environment: Environment, pipeline: str, step: str, generation: int) -> str:
    """Return the checkpoint directory that Spark owns. Headrace's own files are in its parent directories."""
    return f"{step_directory(environment, pipeline, step)}/{generation}/spark"
