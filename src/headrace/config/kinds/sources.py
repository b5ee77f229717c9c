"""The registry of source kinds."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from headrace.config.kinds.file_source import FileSource
from headrace.config.kinds.kafka_source import KafkaSource
from headrace.config.kinds.rate_source import RateSource
from headrace.config.kinds.source_model import SourceModel

Source = Annotated[FileSource | KafkaSource | RateSource, Field(discriminator="kind")]
SOURCES: tuple[type[SourceModel], ...] = get_args(get_args(Source)[0])  # the members of the union
