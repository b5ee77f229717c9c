"""The models of an environment file: engine, locations, triggers, sources, topics, values and settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from headrace.config.kinds.kafka_security import SECURITY, Security
from headrace.config.kinds.sources import Source
from headrace.config.value_types import Duration, Memory, Model, Name, Setting, yaml_type

IVY_SETTINGS = Field(
    default=None,
    description="An Ivy settings file with a mirror, from which jars are downloaded.",
    examples=["conf/ivy.xml"],
)


class LocalEngine(Model):
    """Spark on this machine only, with settings for one machine."""

    kind: Literal["local"] = Field(description="Spark on this machine.")
    cores: int = Field(default=2, ge=1, description="How many cores Spark uses.", examples=[4])
    memory: Memory = Field(default="2g", description="The size of Java's heap.", examples=["4g"])
    ui: bool = Field(
        default=False, description="Whether to serve Spark's web UI while a pipeline runs.", examples=[True]
    )
    ivy_settings: str | None = IVY_SETTINGS


class SparkEngine(Model):
    """A Spark cluster."""

    kind: Literal["spark"] = Field(description="A Spark cluster.")
    master: str = Field(description="The cluster's master.", examples=["spark://spark.example.com:7077"])
    releases: str | None = Field(
        default=None, description="The directory to which releases are deployed.", examples=["/srv/headrace"]
    )
    ivy_settings: str | None = IVY_SETTINGS


class DatabricksEngine(Model):
    """The Spark session of a Databricks job."""

    kind: Literal["databricks"] = Field(description="The Spark session of a Databricks job.")


Engine = Annotated[LocalEngine | SparkEngine | DatabricksEngine, Field(discriminator="kind")]


class Tables(Model):
    """The location of all tables: a path, or a schema of a catalog."""

    root: str | None = Field(
        default=None, description="The directory of all tables, instead of a catalog.", examples=[".headrace/tables"]
    )
    catalog: Name | None = Field(default=None, description="The catalog.", examples=["main"])
    schema_: Name | None = Field(
        default=None, alias="schema", description="The schema of this catalog.", examples=["shop"]
    )


class Every(Model):
    """Start a batch at a fixed interval."""

    every: Duration = Field(description="The interval between the starts of two batches.", examples=["30 seconds"])


# `available_now` and `once` process the available data and end, `once` in a single batch. `default` starts a batch as
# soon as the previous one has ended.
TriggerName = Literal["available_now", "once", "default"]
Trigger = Annotated[Annotated[TriggerName, Tag("scalar")] | Annotated[Every, Tag("mapping")], Discriminator(yaml_type)]


class Topic(Model):
    """A Kafka topic that steps write to."""

    servers: str = Field(description="The bootstrap servers.", examples=["broker-1:9092,broker-2:9092"])
    topic: str = Field(description="The topic's name in Kafka.", examples=["shop.alerts"])
    security: Security | None = SECURITY
    options: dict[str, Setting] = Field(
        default={}, description="Options of Spark's writer for Kafka.", examples=[{"kafka.compression.type": "zstd"}]
    )


class RequiredValue(Model):
    """A value without a default. Each run must set it with --value name=…"""

    required: Literal[True] = Field(description="The value has no default.", examples=[True])


Value = Annotated[
    Annotated[str | int, Tag("scalar")] | Annotated[RequiredValue, Tag("mapping")], Discriminator(yaml_type)
]


class Environment(Model):
    """The engine, locations and values of one environment."""

    name: str
    engine: Engine = Field(description="The Spark that runs the pipelines.")
    tables: Tables = Field(description="The location of all tables.")
    checkpoints: str = Field(description="The directory of all checkpoints.", examples=[".headrace/checkpoints"])
    trigger: Trigger = Field(
        default="available_now",
        description="When steps start batches, and whether they end. `available_now` processes the available data and "
        "ends, `once` does so in a single batch, `default` starts a batch as soon as the previous one has ended, until "
        "the run is stopped, and `{every: …}` does so at an interval.",
        examples=[{"every": "30 seconds"}],
    )
    triggers: dict[Name, Trigger] = Field(
        default={}, description="The triggers of single steps.", examples=[{"gold_revenue": {"every": "1 minute"}}]
    )
    stop_grace: Duration = Field(
        default="5 minutes",
        description="A run that is stopping ends in the middle of its batch if no Spark task finishes for this time.",
        examples=["10 minutes"],
    )
    sources: dict[Name, Source] = Field(default={}, description="The sources, by the names that steps use.")
    topics: dict[Name, Topic] = Field(
        default={}, description="The Kafka topics that steps write to, by the names that they use."
    )
    folders: dict[Name, str] = Field(
        default={},
        description="The folders that steps write to, by the names that they use.",
        examples=[{"exports": "out"}],
    )
    values: dict[Name, Value] = Field(
        default={},
        description="Values for references such as `${user}` in this file: a default, or `{required: true}`. "
        "`--value user=alice` sets one.",
        examples=[{"user": {"required": True}}],
    )
    settings: dict[str, Setting] = Field(
        default={}, description="Spark settings.", examples=[{"spark.sql.session.timeZone": "UTC"}]
    )

    @property
    def option(self) -> str:
        """The option that selects this environment in a command, after a space; empty for local, the default."""
        return "" if self.name == "local" else f" --env {self.name}"

    def trigger_of(self, step: str) -> Trigger:
        """Return the trigger of a step; the environment's trigger unless `triggers` names the step."""
        return self.triggers.get(step, self.trigger)
