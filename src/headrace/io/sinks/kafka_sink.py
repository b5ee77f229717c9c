"""Write Kafka topics: how rows become records, and the options that Spark needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import Environment, Sink, Step
from headrace.errors import ConfigurationError
from headrace.io import secrets
from headrace.io.delta.transaction_id import TransactionId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

KAFKA_COLUMNS = {"key", "value", "headers", "topic", "partition"}  # Spark's Kafka writer drops all other columns


def open_stream(frame: DataFrame, sink: Sink, environment: Environment) -> DataStreamWriter:
    """Return Spark's Kafka sink for the topic."""
    return as_records(frame).writeStream.format("kafka").options(**writer_options(sink, environment))


def write_batch(rows: DataFrame, sink: Sink, step: Step, environment: Environment, transaction: TransactionId) -> None:
    """Send a batch to the topic. A repeated batch is sent again, because Kafka has no transaction ids of batches."""
    options = {**writer_options(sink, environment), **sink.options}
    as_records(rows).write.format("kafka").options(**options).save()


def writer_options(sink: Sink, environment: Environment) -> dict[str, str]:
    """Return Spark's options for writing to the topic."""
    topic = environment.topics[str(sink.topic)]
    options = {
        "kafka.bootstrap.servers": topic.servers,
        "topic": topic.topic,
        **secrets.kafka_options(topic.security),
    }
    return options | {key: str(value) for key, value in topic.options.items()}


def as_records(rows: DataFrame) -> DataFrame:
    """Return the rows as Kafka records: unchanged if they have only columns of a record, else one JSON object each."""
    from pyspark.sql import functions as F

    is_record = "value" in rows.columns and KAFKA_COLUMNS.issuperset(rows.columns)
    return rows if is_record else rows.select(F.to_json(F.struct("*")).alias("value"))


def require_record_columns(rows: DataFrame, topic: str) -> None:
    """Raise ConfigurationError for columns that Kafka's writer would drop."""
    columns = set(rows.columns)
    others = sorted(columns - KAFKA_COLUMNS)
    if "value" not in columns:  # `as_records` keeps all columns in the JSON object
        return
    if "topic" in columns and not others:
        raise ConfigurationError(
            f"the sink sends to topic {topic!r}, so column 'topic' would be lost",
            fix="drop the column in the transform, or rename 'value' to send each row as one JSON object",
        )
    if others and columns & (KAFKA_COLUMNS - {"value"}):
        kafka = ", ".join(repr(name) for name in sorted(columns & KAFKA_COLUMNS))
        raise ConfigurationError(
            f"column {others[0]!r} would be lost: the Kafka record would have only {kafka}",
            fix="drop it in the transform, or rename 'value' to send each row as one JSON object",
        )
