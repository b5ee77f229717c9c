"""The signature of a step: what its query computes, over empty inputs with the schemas of the real ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace.config.models import Read, Sink, Step
from headrace.expectations.verdict import VERDICT
from headrace.io.watermarks import without_watermark_marks
from headrace.signatures.compute import compute_signature
from headrace.signatures.empty_inputs import empty_static, empty_stream
from headrace.signatures.signature import Signature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def step_signature(
    spark: SparkSession,
    step: Step,
    inputs: Mapping[str, DataFrame],
    transform: Callable[[Mapping[str, DataFrame]], DataFrame],
) -> Signature | None:
    """Return the signature of a step; None if it cannot be computed. See `require_signature`."""
    try:
        return require_signature(spark, step, inputs, transform)
    except Exception:  # plans are internal to Spark, and a transform may not expect empty inputs
        return None


def require_signature(
    spark: SparkSession,
    step: Step,
    inputs: Mapping[str, DataFrame],
    transform: Callable[[Mapping[str, DataFrame]], DataFrame],
) -> Signature:
    """Return the signature of a step; raise any error if it cannot be computed, as with Spark Connect.

    `inputs` are the real inputs. `transform` returns the rows that the step writes, for inputs with the same names.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-signature-") as directory:
        schemas = {name: without_watermark_marks(frame.drop(VERDICT)).schema for name, frame in inputs.items()}
        empty = {name: _empty_input(spark, name, step.reads[name], schemas[name], directory) for name in schemas}
        return compute_signature(
            transform(empty),
            output_mode=step.output,
            inputs={name: _described_input(read) for name, read in step.reads.items()},
            sinks=[_described_sink(sink) for sink in step.writes],
        )


def _empty_input(spark: SparkSession, name: str, read: Read, schema: StructType, directory: str) -> DataFrame:
    if read.static:
        return empty_static(spark, name, schema, directory)
    stream = empty_stream(spark, name, schema, directory)
    return stream.withWatermark(read.watermark.column, read.watermark.delay) if read.watermark else stream


def _described_input(read: Read) -> dict[str, str]:
    """Return what an input reads, without the kind and location that its environment gives it."""
    if read.source is not None:
        return {"kind": "source", "name": f"source {read.source}"}
    return {"kind": "changes" if read.changes else "table", "name": f"table {read.table}"}


def _described_sink(sink: Sink) -> dict[str, object]:
    name = getattr(sink, sink.kind)  # no text for the console: it has no name
    described: dict[str, object] = {"kind": sink.kind, "name": name if isinstance(name, str) else ""}
    if sink.kind == "table":
        described |= {"mode": sink.mode, "keys": list(sink.keys), "sequence": sink.sequence or ""}
        described |= {"partition_by": list(sink.partition_by), "cluster_by": list(sink.cluster_by)}
    return {key: value for key, value in described.items() if value}
