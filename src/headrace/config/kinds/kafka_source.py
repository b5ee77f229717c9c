"""Kafka topics as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from headrace.config.kinds.kafka_security import SECURITY, Security
from headrace.config.kinds.source_model import SourceModel
from headrace.config.value_types import TupleOf


class KafkaSource(SourceModel):
    """Records of Kafka topics."""

    implementation: ClassVar[str] = "headrace.io.sources.kafka_source"

    kind: Literal["kafka"] = Field(description="Kafka topics.")
    servers: str = Field(description="The bootstrap servers.", examples=["broker-1:9092,broker-2:9092"])
    topics: TupleOf[str] = Field(default=(), description="The names of the topics.", examples=[["orders"]])
    pattern: str | None = Field(
        default=None,
        description="A regular expression for the names of the topics, instead of `topics`.",
        examples=["orders-.*"],
    )
    format: Literal["json", "text", "bytes"] = Field(
        default="json", description="The format of the records' values.", examples=["text"]
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="Where a new checkpoint starts to read.", examples=["latest"]
    )
    security: Security | None = SECURITY

    @property
    def location(self) -> str:
        """The bootstrap servers."""
        return self.servers

    @property
    def needs_schema(self) -> bool:
        """Whether the records are JSON, whose columns differ; the columns of other formats are always the same."""
        return self.format == "json"
