"""Tools for users' tests: run transforms as streams, and run whole pipelines.

The submodule `kafka_broker` starts a Kafka broker, and `workspace` serves a local Databricks workspace.
"""

from headrace.config.models import FileSource, KafkaSource, RateSource
from headrace.testing.pipeline_run import PipelineRun, run_pipeline
from headrace.testing.stream_harness import Input, Stream, StreamHarness

__all__ = [
    "FileSource",
    "Input",
    "KafkaSource",
    "PipelineRun",
    "RateSource",
    "Stream",
    "StreamHarness",
    "run_pipeline",
]
