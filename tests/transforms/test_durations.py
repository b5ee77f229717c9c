"""A duration is the same to the check, which imports no Spark, and to the transform that takes it."""

from __future__ import annotations

from headrace.graph import function_signatures
from headrace.transforms import gold


def test_check_and_transform_accept_the_same_durations() -> None:
    assert function_signatures.SPAN.pattern == gold.DURATION.pattern
