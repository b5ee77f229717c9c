"""Where checkpoints lie: derived from pipeline, step and generation, never typed."""

from __future__ import annotations

from headrace.config.models import Environment

FIRST_GENERATION = 1


def step_directory(environment: Environment, pipeline: str, step: str) -> str:
    """The directory of all generations of a step."""
    return f"{environment.checkpoints.rstrip('/')}/{pipeline}/{step}"


def spark_directory(environment: Environment, pipeline: str, step: str) -> str:
    """The checkpoint directory that Spark owns; ours lie beside it."""
    return f"{step_directory(environment, pipeline, step)}/{FIRST_GENERATION}/spark"
