"""The signatures of the reference pipeline's steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.load import load_bundle
from headrace.graph.order import all_steps
from headrace.graph.resolve import bind_arguments, resolve
from headrace.io.sources.declared_schema import declared_schema
from headrace.signatures.compute import compute_signature
from headrace.signatures.empty_inputs import empty_static, empty_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.config.models import Step
    from headrace.signatures.signature import Signature

ROOT = Path(__file__).parents[1]


def reference_queries(spark: SparkSession, directory: str) -> Iterator[tuple[Step, DataFrame]]:
    """Yield each step with its result over empty inputs, which are in a local directory."""
    tables: dict[str | None, Any] = {}
    for _, step in all_steps(load_bundle(ROOT)):
        inputs = {}
        for name, read in step.reads.items():
            schema = declared_schema(read) if read.source else tables[read.table]
            frame = (empty_static if read.static else empty_stream)(spark, name, schema, directory)
            if read.watermark:
                frame = frame.withWatermark(read.watermark.column, read.watermark.delay)
            inputs[name] = frame
        result = next(iter(inputs.values()))
        if step.transform:
            function = resolve(step.transform)
            arguments, settings = bind_arguments(step, function, inputs)
            result = function(*arguments, **settings)
        tables |= dict.fromkeys(step.tables_written, result.schema)
        yield step, result


def reference_signature(step: Step, result: DataFrame) -> Signature:
    inputs = {
        name: {"kind": "source", "name": f"source {read.source}"}
        if read.source
        else {"kind": "table", "name": f"table {read.table}"}
        for name, read in step.reads.items()
    }
    sinks = [
        {
            "kind": "table",
            "name": sink.table,
            "mode": sink.mode,
            "keys": list(sink.keys),
            "sequence": sink.sequence,
            "partition_by": list(sink.partition_by),
        }
        for sink in step.writes
    ]
    return compute_signature(result, output_mode=step.output, inputs=inputs, sinks=sinks)
