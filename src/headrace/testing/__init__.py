"""Tools for users' tests: run transforms as streams, whole pipelines, a Kafka broker and a local workspace."""

from headrace.testing.pipeline_run import PipelineRun, run_pipeline
from headrace.testing.stream_harness import Input, Stream, StreamHarness

__all__ = ["Input", "PipelineRun", "Stream", "StreamHarness", "run_pipeline"]
