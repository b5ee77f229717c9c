"""Kafka topics as a sink."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.kinds.sink_model import SinkModel
from headrace.config.value_types import Name


class KafkaSink(SinkModel):
    """A Kafka topic. The environment gives the bootstrap servers and the topic's name in Kafka."""

    kind_name: ClassVar[str] = "topic"
    label: ClassVar[str] = "a topic"
    plural: ClassVar[str] = "topics"
    implementation: ClassVar[str] = "headrace.io.sinks.kafka_sink"
    is_located: ClassVar[bool] = True

    topic: Name | None = Field(
        default=None, description="The topic, by its name under `topics` of the environment.", examples=["alerts"]
    )
