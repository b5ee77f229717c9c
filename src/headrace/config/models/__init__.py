"""The configuration as frozen values. These classes define the keys and types of a bundle's YAML files.

Reading files, locating keys and writing messages is left to the loader.
"""

from headrace.config.models.bundle import Bundle
from headrace.config.models.environment import (
    DatabricksEngine,
    Engine,
    Environment,
    Every,
    FileSource,
    KafkaSource,
    LocalEngine,
    RateSource,
    Secret,
    Security,
    Source,
    SparkEngine,
    Tables,
    Topic,
    Trigger,
)
from headrace.config.models.pipeline import Layer, Pipeline, Read, Rule, Sink, Step, Watermark
from headrace.config.models.value_types import Setting, local_path, milliseconds

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
