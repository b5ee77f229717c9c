"""`headrace check`, which does not import Spark, and the transforms accept the same durations."""

from __future__ import annotations

from headrace.graph import function_signatures
from headrace.transforms import gold


def test_check_and_transform_accept_the_same_durations() -> None:
    assert function_signatures.TRANSFORM_DURATION.pattern == gold.DURATION.pattern
