"""For users' tests: transforms run as real streams, whole pipelines, a real Kafka broker, a workspace."""

from headrace.testing.harness import Input, Stream, StreamHarness
from headrace.testing.pipelines import PipelineRun, run_pipeline

__all__ = ["Input", "PipelineRun", "Stream", "StreamHarness", "run_pipeline"]
