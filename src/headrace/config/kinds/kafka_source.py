"""Kafka topics as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from headrace.config.kinds.kafka_security import Security
from headrace.config.kinds.source_model import SourceModel
from headrace.config.value_types import TupleOf


class KafkaSource(SourceModel):
    """Records of Kafka topics."""

    implementation: ClassVar[str] = "headrace.io.sources.kafka_source"

    kind: Literal["kafka"]
    servers: str
    topics: TupleOf[str] = ()
    pattern: str | None = None  # a regular expression for the names of the topics, instead of `topics`
    format: Literal["json", "text", "bytes"] = "json"
    start: Literal["earliest", "latest"] = "earliest"  # where a new checkpoint starts to read
    security: Security | None = None

    @property
    def location(self) -> str:
        """The bootstrap servers."""
        return self.servers

    @property
    def needs_schema(self) -> bool:
        """Whether the records are JSON, whose columns differ; the columns of other formats are always the same."""
        return self.format == "json"
