"""Open Kafka topics as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.config.models import KafkaSource
from headrace.config.spark_options import encoding_of
from headrace.expectations.verdict import POSITION, RAW
from headrace.io import secrets
from headrace.io.sources.decoding import decode, with_valid_text
from headrace.io.sources.json_records import parse_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def open_stream(spark: SparkSession, source: KafkaSource, schema: StructType | None) -> DataFrame:
    """Open the records of the topics as rows of this schema, with the columns about the raw records.

    For the formats `bytes` and `text`, and without a schema, the only column of data is `value`.
    """
    from pyspark.sql import functions as F

    topics = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": source.servers,
        "startingOffsets": source.start,
        **topics,
        **secrets.kafka_options(source.security),
        **source.options,
    }
    records = spark.readStream.format("kafka").options(**options).load()
    position = F.concat_ws("-", "topic", "partition", "offset").alias(POSITION)
    if source.format == "bytes":
        return records.select("value", F.base64("value").alias(RAW), position)
    texts = decode(records.select("value", position), "value", encoding_of(source.options))
    if source.format == "text" or schema is None:
        return with_valid_text(texts, "value", RAW)
    return with_valid_text(parse_json(texts, schema, source.options), RAW)
