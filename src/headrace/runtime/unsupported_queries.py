"""Check with Spark's own checker whether Spark can run a query as a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.models import Step
from headrace.errors import ConfigurationError, one_line
from headrace.io import watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TIMERS = re.compile(r"(?:GroupsInPandasWithState|TransformWithState).*ProcessingTime")  # as plans print them (4.2.0)


def require_supported(frame: DataFrame, step: Step, inputs: Mapping[str, DataFrame]) -> None:
    """Raise ConfigurationError if Spark's own checker rejects the query that `frame` defines for the step.

    `inputs` are the step's inputs, for the fix if a watermark is missing. The check takes 0.5 ms (4.2.0). Do nothing on
    Spark Connect, which hides the checker.
    """
    jvm: Any = getattr(frame.sparkSession, "_jvm", None)
    if jvm is None:
        return
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, step.output.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    frame_in_jvm: Any = frame._jdf
    try:
        checker.checkForStreaming(frame_in_jvm.queryExecution().analyzed(), mode)
    except Exception as error:
        unsupported = transform_error(error, "Spark cannot stream this query")
        if "without watermark" in str(error) or "without a watermark" in str(error):
            plan = frame_in_jvm.queryExecution().analyzed().toString()
            message = unsupported.problems[0].message
            raise ConfigurationError(message, fix=watermarks.missing_watermark(step, inputs, plan)) from error
        raise unsupported from error


def has_timers(frame: DataFrame) -> bool:
    """Return whether the query has processing-time timers; false on Spark Connect, which hides the plan."""
    frame_in_jvm: Any = getattr(frame, "_jdf", None)
    return frame_in_jvm is not None and TIMERS.search(frame_in_jvm.queryExecution().analyzed().toString()) is not None


def transform_error(error: Exception, what: str) -> ConfigurationError:
    """Convert an error of a transform or of Spark's checker to a ConfigurationError. `what` begins the message."""
    return ConfigurationError(
        f"{what}: {one_line(error)}",
        fix="change the transform, its settings or the step's output mode",
    )
