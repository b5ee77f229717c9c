"""The configuration as frozen values. These classes define the keys and types of a bundle's YAML files.

They do not read files, locate keys or write messages: the other modules of `config` do.
"""

from headrace.config.kinds.expectation import Rule
from headrace.config.kinds.file_source import FileSource
from headrace.config.kinds.kafka_security import Secret, Security
from headrace.config.kinds.kafka_source import KafkaSource
from headrace.config.kinds.rate_source import RateSource
from headrace.config.kinds.sinks import Sink
from headrace.config.kinds.sources import Source
from headrace.config.models.bundle import Bundle
from headrace.config.models.environment import (
    DatabricksEngine,
    Engine,
    Environment,
    Every,
    LocalEngine,
    SparkEngine,
    Tables,
    Topic,
    Trigger,
)
from headrace.config.models.pipeline import Layer, Pipeline, Read, Step, Watermark
from headrace.config.value_types import Setting, local_path, milliseconds

__all__ = [
    "Bundle",
    "DatabricksEngine",
    "Engine",
    "Environment",
    "Every",
    "FileSource",
    "KafkaSource",
    "Layer",
    "LocalEngine",
    "Pipeline",
    "RateSource",
    "Read",
    "Rule",
    "Secret",
    "Security",
    "Setting",
    "Sink",
    "Source",
    "SparkEngine",
    "Step",
    "Tables",
    "Topic",
    "Trigger",
    "Watermark",
    "local_path",
    "milliseconds",
]
