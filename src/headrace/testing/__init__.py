"""For users' tests: transforms run as real streams, data in and data out."""

from headrace.testing.harness import Input, Stream, StreamHarness

__all__ = ["Input", "Stream", "StreamHarness"]
