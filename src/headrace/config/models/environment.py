"""The models of an environment file: engine, locations, triggers, sources, topics, values and settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from headrace.config.kinds.kafka_security import Security
from headrace.config.kinds.sources import Source
from headrace.config.value_types import Duration, Memory, Model, Name, Setting, yaml_type


class LocalEngine(Model):
    """Spark on this machine only, with settings for one machine."""

    kind: Literal["local"]
    cores: int = Field(default=2, ge=1)
    memory: Memory = "2g"
    ui: bool = False
    ivy_settings: str | None = None


class SparkEngine(Model):
    """A Spark cluster (`master`); `releases` is the directory to which releases are deployed."""

    kind: Literal["spark"]
    master: str
    releases: str | None = None
    ivy_settings: str | None = None


class DatabricksEngine(Model):
    """The Spark session of a Databricks job."""

    kind: Literal["databricks"]


Engine = Annotated[LocalEngine | SparkEngine | DatabricksEngine, Field(discriminator="kind")]


class Tables(Model):
    """The location of all tables: a path, or a schema of a catalog."""

    root: str | None = None
    catalog: Name | None = None
    schema_: Name | None = Field(default=None, alias="schema")


class Every(Model):
    """Start a batch at a fixed interval."""

    every: Duration


# `available_now` and `once` process the available data and end, `once` in a single batch. `default` starts a batch as
# soon as the previous one has ended.
TriggerName = Literal["available_now", "once", "default"]
Trigger = Annotated[Annotated[TriggerName, Tag("scalar")] | Annotated[Every, Tag("mapping")], Discriminator(yaml_type)]


class Topic(Model):
    """A Kafka topic that steps write to."""

    servers: str
    topic: str  # the topic's name in Kafka
    security: Security | None = None
    options: dict[str, Setting] = {}


class RequiredValue(Model):
    """A value without a default. Each run must set it with --value name=…"""

    required: Literal[True]


Value = Annotated[
    Annotated[str | int, Tag("scalar")] | Annotated[RequiredValue, Tag("mapping")], Discriminator(yaml_type)
]


class Environment(Model):
    """The engine, locations and values of one environment."""

    name: str
    engine: Engine
    tables: Tables
    checkpoints: str
    trigger: Trigger = "available_now"
    triggers: dict[Name, Trigger] = {}
    # A run that is stopping ends in the middle of its batch if no Spark task finishes for this time.
    stop_grace: Duration = "5 minutes"
    sources: dict[Name, Source] = {}
    topics: dict[Name, Topic] = {}
    folders: dict[Name, str] = {}
    values: dict[Name, Value] = {}
    settings: dict[str, Setting] = {}  # of Spark

    @property
    def option(self) -> str:
        """The option that selects this environment in a command, after a space; empty for local, the default."""
        return "" if self.name == "local" else f" --env {self.name}"

    def trigger_of(self, step: str) -> Trigger:
        """Return the trigger of a step; the environment's trigger unless `triggers` names the step."""
        return self.triggers.get(step, self.trigger)
