"""For users' tests: transforms run as real streams, data in and data out; whole pipelines; a real Kafka broker."""

from headrace.testing.harness import Input, Stream, StreamHarness
from headrace.testing.pipelines import PipelineRun, run_pipeline

__all__ = ["Input", "PipelineRun", "Stream", "StreamHarness", "run_pipeline"]
