"""For users' tests: transforms run as real streams, whole pipelines, a real Kafka broker, a workspace."""

from headrace.testing.pipeline_run import PipelineRun, run_pipeline
from headrace.testing.stream_harness import Input, Stream, StreamHarness

__all__ = ["Input", "PipelineRun", "Stream", "StreamHarness", "run_pipeline"]
