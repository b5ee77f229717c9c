"""An environment file as frozen values: the places, and what is given there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from headrace.config.models.value_types import Duration, Memory, Model, Name, SecretName, Setting, TupleOf


class LocalEngine(Model):
    """Spark inside this process, tuned for one machine."""

    kind: Literal["local"]
    cores: int = Field(default=2, ge=1)
    memory: Memory = "2g"
    ui: bool = False
    ivy_settings: str | None = None


class SparkEngine(Model):
    """A Spark cluster, reached by its master; releases are laid down in a directory of its own."""

    kind: Literal["spark"]
    master: str
    releases: str | None = None
    ivy_settings: str | None = None


class DatabricksEngine(Model):
    """The session that a Databricks job brings along."""

    kind: Literal["databricks"]


Engine = Annotated[LocalEngine | SparkEngine | DatabricksEngine, Field(discriminator="kind")]


class Tables(Model):
    """Where tables live: under a path, or in a catalog's schema."""

    root: str | None = None
    catalog: Name | None = None
    schema_: Name | None = Field(default=None, alias="schema")


class Every(Model):
    """Start a batch at a fixed interval."""

    every: Duration


def _written_as(value: object) -> str:
    return "keys" if isinstance(value, (dict, BaseModel)) else "word"


TriggerName = Literal["available_now", "once", "default"]
Trigger = Annotated[Annotated[TriggerName, Tag("word")] | Annotated[Every, Tag("keys")], Discriminator(_written_as)]


class Secret(Model):
    """A reference to a secret, `scope/key`: fetched when a run starts, never written down."""

    secret: SecretName


class Security(Model):
    """How to log in to Kafka: SASL over TLS unless `tls` is false."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Annotated[Annotated[str, Tag("word")] | Annotated[Secret, Tag("keys")], Discriminator(_written_as)]
    password: Secret
    tls: bool = True


class FileSource(Model):
    """Files that arrive in a directory."""

    kind: Literal["files"]
    format: str
    path: str
    options: dict[str, Setting] = {}


class KafkaSource(Model):
    """Records of Kafka topics."""

    kind: Literal["kafka"]
    servers: str
    topics: TupleOf[str] = ()
    pattern: str | None = None
    format: Literal["json", "text", "bytes"] = "json"
    start: Literal["earliest", "latest"] = "earliest"
    security: Security | None = None
    options: dict[str, Setting] = {}


class RateSource(Model):
    """Numbered rows at a steady rate, for trials."""

    kind: Literal["rate"]
    rows_per_second: int = Field(default=1, ge=1)
    options: dict[str, Setting] = {}


Source = Annotated[FileSource | KafkaSource | RateSource, Field(discriminator="kind")]


class Topic(Model):
    """The place of a Kafka topic that a step writes to."""

    servers: str
    topic: str
    security: Security | None = None
    options: dict[str, Setting] = {}


class RequiredValue(Model):
    """A value that each run gives with --value name=…"""

    required: Literal[True]


Value = Annotated[Annotated[str | int, Tag("word")] | Annotated[RequiredValue, Tag("keys")], Discriminator(_written_as)]


class Environment(Model):
    """The places and values of one environment."""

    name: str
    engine: Engine
    tables: Tables
    checkpoints: str
    trigger: Trigger = "available_now"
    triggers: dict[Name, Trigger] = {}
    stop_grace: Duration = "5 minutes"  # of a run that should stop: how long no task may finish before it is ended
    sources: dict[Name, Source] = {}
    topics: dict[Name, Topic] = {}
    folders: dict[Name, str] = {}
    values: dict[Name, Value] = {}
    settings: dict[str, Setting] = {}

    def trigger_of(self, step: str) -> Trigger:
        """The step's own trigger, else the environment's."""
        return self.triggers.get(step, self.trigger)
