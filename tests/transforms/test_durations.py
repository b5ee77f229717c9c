"""A duration is the same to the check, which imports no Spark, and to the transform that takes it."""

from __future__ import annotations

from headrace.graph import function_signatures
from headrace.transforms import gold


def test_the_check_and_the_transform_read_durations_alike() -> None:
    assert function_signatures.SPAN.pattern == gold.DURATION.pattern
