"""Watermarks of a query: they come from the configuration only, none is inherited from a table.

Spark marks a column with a watermark by a key in the column's metadata. Delta stores this metadata in the table's
schema. A query that reads the table then behaves as if it had a watermark: an aggregation in append mode starts and
never emits a row (Spark 4.2.0, Delta 4.4.0). So the key is removed from every input and every output. All other
metadata stays, because chained windows need `spark.timeWindow`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.models import Step
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

METADATA_KEY = "spark.watermarkDelayMs"
# In the text of a query plan (Spark 4.2.0): the end of a column that has a watermark, and the time column of a window.
WATERMARK_IN_PLAN = re.compile(r"-T\d+ms")
WINDOW_TIME_IN_PLAN = re.compile(r"precisetimestampconversion\((?:\w+\()?(\w+)#")
EXAMPLE_DELAY = "10 minutes"  # in fixes
EVENT_TIME_METRICS = "headrace_event_time_"  # followed by the name of the input
ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"  # the format of the event times in Spark's own reports


def without_watermark_marks(frame: DataFrame) -> DataFrame:
    """Return the DataFrame without METADATA_KEY in its columns' metadata; the same DataFrame if no column has the key.

    Operators that the query already has still use their watermark.
    """
    from pyspark.sql import functions as F

    if METADATA_KEY not in frame.schema.json():
        return frame
    columns = []
    for field in frame.schema.fields:
        column, data_type = F.col(quote_name(field.name)), _unmarked(field.dataType)
        if data_type.json() != field.dataType.json():
            column = column.cast(data_type)
        metadata = {key: value for key, value in field.metadata.items() if key != METADATA_KEY}
        columns.append(column.alias(field.name, metadata=metadata))
    return frame.select(*columns)


def observe_event_times(inputs: Mapping[str, DataFrame], step: Step) -> dict[str, DataFrame]:
    """Add metrics of the oldest and newest event time to each input with a watermark. Return all inputs.

    Add no metrics if fewer than two inputs have a watermark: Spark itself reports the event times of a single one.
    """
    from pyspark.sql import functions as F

    columns = {name: read.watermark.column for name, read in step.reads.items() if read.watermark}
    if len(columns) < 2:
        return dict(inputs)
    observed = dict(inputs)
    for name, column in columns.items():
        is_window = inputs[name].select(column).schema.fields[0].dataType.typeName() == "struct"
        time = f"{column}.end" if is_window else column
        extremes = {"oldest": F.min(time), "newest": F.max(time)}
        texts = [F.date_format(extreme, ISO_FORMAT).alias(metric) for metric, extreme in extremes.items()]
        observed[name] = inputs[name].observe(EVENT_TIME_METRICS + name, *texts)
    return observed


def missing_watermark(step: Step, inputs: Mapping[str, DataFrame], plan: str) -> str:
    """Return the fix for a query that Spark rejects because a watermark is missing.

    The fix names the likely column of each stream without a watermark. If all streams have a watermark, the fix says
    how the transform has to use it. `plan` is the text of the query's plan.
    """
    unwatermarked = {
        name: frame for name, frame in inputs.items() if frame.isStreaming and not step.reads[name].watermark
    }
    if not unwatermarked:
        columns = " and ".join(repr(read.watermark.column) for read in step.reads.values() if read.watermark)
        return f"group or join by the watermark's column ({columns}) or a window over it, and do not drop it before"
    fixes = []
    for name, frame in unwatermarked.items():
        column = _likely_column(step, frame, plan)
        if column is None:
            fixes.append(f"give reads.{name} a column of type TIMESTAMP and a watermark on it")
        else:
            fixes.append(f"add to reads.{name}: watermark: {{column: {column}, delay: {EXAMPLE_DELAY}}}")
    return "; ".join(fixes)


def unbounded_state(frame: DataFrame, step: Step) -> list[str]:
    """Return a warning for each kind of operator in the query whose state Spark never removes.

    Return no warnings on Spark Connect, which hides the plan.
    """
    frame_in_jvm: Any = getattr(frame, "_jdf", None)
    if frame_in_jvm is None:
        return []
    reasons = [_unbounded_reason(node, step) for node in _nodes(frame_in_jvm.queryExecution().analyzed())]
    return [f"the state grows for ever: {reason}" for reason in dict.fromkeys(filter(None, reasons))]


def _unbounded_reason(node: Any, step: Step) -> str:
    """Return why Spark never removes the state of this operator; empty if Spark removes the state or there is none."""
    name = node.nodeName()
    if name == "Deduplicate" and node.isStreaming() and not _has_watermark(node.keys()):
        return "dropDuplicates without the watermark's column among its columns keeps every key"
    if name == "Aggregate" and node.isStreaming() and node.groupingExpressions().nonEmpty():
        if step.output == "complete":
            return "output: complete keeps every group"
        if not _has_watermark(node.groupingExpressions()):
            return "an aggregation that does not group by the watermark's column keeps every group"
    is_stream_join = name == "Join" and node.left().isStreaming() and node.right().isStreaming()
    if is_stream_join and not any(_has_watermark(side.output()) for side in (node.left(), node.right())):
        return "a join of two streams without a watermark keeps every row"
    return ""


def _likely_column(step: Step, frame: DataFrame, plan: str) -> str | None:
    """Return the timestamp column of `frame` that a window uses or a setting of the step names.

    If there is none, return the first timestamp column; None if the DataFrame has no timestamp column.
    """
    times = [field.name for field in frame.schema.fields if field.dataType.typeName() == "timestamp"]
    settings = [value for value in step.with_.values() if isinstance(value, str)]
    candidates = [*WINDOW_TIME_IN_PLAN.findall(plan), *settings, *times]
    return next((column for column in candidates if column in times), None)


def _unmarked(data_type: DataType) -> DataType:
    """Return the type without METADATA_KEY in the metadata of nested fields."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(
                    field.name,
                    _unmarked(field.dataType),
                    field.nullable,
                    {key: value for key, value in field.metadata.items() if key != METADATA_KEY},
                )
                for field in data_type.fields
            ]
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_unmarked(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(_unmarked(data_type.keyType), _unmarked(data_type.valueType), data_type.valueContainsNull)
    return data_type


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield the operators of a query plan, each before its inputs."""
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _has_watermark(expressions: Any) -> bool:
    """Return whether one of these expressions, a Scala sequence, is or contains a column with a watermark."""
    texts = [expressions.apply(number).toString() for number in range(expressions.size())]
    return any(WATERMARK_IN_PLAN.search(text) for text in texts)
