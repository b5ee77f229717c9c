"""Checkpoint paths."""

from headrace.checkpoints.layout import spark_directory, step_directory
from headrace.config.models import Environment, LocalEngine, Tables


def test_checkpoint_paths():
    environment = Environment(
        name="e", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints="s3://bucket/checkpoints/"
    )
    assert step_directory(environment, "orders", "gold") == "s3://bucket/checkpoints/orders/gold"
    assert spark_directory(environment, "orders", "gold", 2) == "s3://bucket/checkpoints/orders/gold/2/spark"
