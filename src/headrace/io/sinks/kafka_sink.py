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
    """Return the rows as Kafka records.

    The rows are unchanged if they have `value` and only columns of a record. Otherwise each row is one JSON object.
    """
    from pyspark.sql import functions as F

    is_record = "value" in rows.columns and KAFKA_COLUMNS.issuperset(rows.columns)
    return rows if is_record else rows.select(F.to_json(F.struct("*")).alias("value"))


def require_record_columns(rows: DataFrame, topic: str) -> None:
    """Raise ConfigurationError if the columns are ambiguous.

    They are in part those of a Kafka record and in part those of a JSON object, or they include a `topic`, which the
    sink overrides with the name of its own topic, the parameter `topic`.
    """
    columns = set(rows.columns)
    others = sorted(columns - KAFKA_COLUMNS)
    if "value" not in columns:  # each row is a JSON object with all columns
        return
    if "topic" in columns and not others:
        raise ConfigurationError(
            f"column 'topic' has no effect, because the sink sends all rows to topic {topic!r}",
            fix="drop the column in the transform, or rename 'value' to send each row as one JSON object",
        )
    if others and columns & (KAFKA_COLUMNS - {"value"}):
        record_columns = ", ".join(repr(name) for name in sorted(columns & KAFKA_COLUMNS))
        other_columns = ", ".join(map(repr, others))
        raise ConfigurationError(
            f"the rows have columns of a Kafka record ({record_columns}) and other columns ({other_columns})",
            fix="drop the other columns in the transform, or rename 'value' to send each row as one JSON object",
        )
