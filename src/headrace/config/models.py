"""The configuration as frozen values: what a bundle's YAML files may say, and nothing else.

Names, line numbers and messages are the loader's; these classes only say which keys and types there are.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

UNITS = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
DURATION = re.compile(rf"^\s*(\d+)\s+({'|'.join(UNITS)})s?\s*$")


def milliseconds(duration: str) -> int:
    """'10 minutes' -> 600000; ValueError when it is not a duration."""
    match = DURATION.match(duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration; write a number and a unit, like '10 minutes'")
    return int(match[1]) * UNITS[match[2]]


def _duration(value: object) -> object:
    if isinstance(value, str):
        milliseconds(value)
    return value


Duration = Annotated[str, BeforeValidator(_duration)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ImportPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Setting = str | int | float | bool
Layer = Literal["bronze", "silver", "gold"]


class Model(BaseModel):
    """Frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


# ── Pipeline files ────────────────────────────────────────────────────────────────────────────────────


class Rule(Model):
    """One entry of `expect`: exactly one of the five tests, and what to do with a row that fails it."""

    not_null: tuple[str, ...] | None = None
    between: dict[str, tuple[Any, Any]] | None = None
    one_of: dict[str, tuple[Any, ...]] | None = None
    matches: dict[str, str] | None = None
    rule: ImportPath | None = None
    on_fail: Literal["quarantine", "drop", "warn", "stop"] = "quarantine"


class Watermark(Model):
    """The event-time column, and how late a row may be."""

    column: str
    delay: Duration


class Read(Model):
    """One input of a step: an outside source or a table."""

    source: Name | None = None
    table: Name | None = None
    schema_: str | None = Field(default=None, alias="schema")
    infer: bool = False
    static: bool = False
    changes: bool = False
    watermark: Watermark | None = None
    max_future: Duration = "5 minutes"
    expect: tuple[Rule, ...] = ()
    options: dict[str, Setting] = {}


class Sink(Model):
    """One output of a step: exactly one of table, topic, folder, console, memory."""

    table: Name | None = None
    topic: Name | None = None
    folder: Name | None = None
    console: bool | None = None
    memory: Name | None = None
    mode: Literal["append", "replace", "upsert", "history"] = "append"
    keys: tuple[str, ...] = ()
    sequence: str | None = None
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    format: str | None = None
    options: dict[str, Setting] = {}

    @property
    def kind(self) -> str:
        """table, topic, folder, console or memory."""
        return next(kind for kind in ("table", "topic", "folder", "console", "memory") if getattr(self, kind))


class Step(Model):
    """Reads, one transform, writes: one streaming query."""

    name: str
    layer: Layer
    reads: dict[Name, Read]
    transform: ImportPath | None = None
    with_: dict[str, Any] = Field(default={}, alias="with")
    row_wise: bool = False
    expect: tuple[Rule, ...] = ()
    writes: tuple[Sink, ...]
    output: Literal["append", "update", "complete"] = "append"
    settings: dict[str, Setting] = {}
    version: int = 1
    on_failure: Literal["stop", "continue"] = "stop"

    @property
    def tables_written(self) -> tuple[str, ...]:
        """The names of the tables among the writes."""
        return tuple(sink.table for sink in self.writes if sink.table)


class Pipeline(Model):
    """One file in conf/pipelines."""

    name: str
    steps: dict[Name, Step]


# ── Environment files ─────────────────────────────────────────────────────────────────────────────────


class LocalEngine(Model):
    """Spark inside this process, tuned for one machine."""

    kind: Literal["local"]
    cores: int = Field(default=2, ge=1)
    memory: Annotated[str, StringConstraints(pattern=r"^\d+[mg]$")] = "2g"
    ui: bool = False
    ivy_settings: str | None = None


class SparkEngine(Model):
    """A Spark cluster, reached by its master."""

    kind: Literal["spark"]
    master: str
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


Trigger = Literal["available_now", "once", "default"] | Every


class Secret(Model):
    """A reference to a secret, `scope/key`: fetched when a run starts, never written down."""

    secret: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]


class Security(Model):
    """How to log in to Kafka: SASL over TLS unless `tls` is false."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: str | Secret
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
    topics: tuple[str, ...] = ()
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


class Environment(Model):
    """The places and values of one environment."""

    name: str
    engine: Engine
    tables: Tables
    checkpoints: str
    trigger: Trigger = "available_now"
    triggers: dict[Name, Trigger] = {}
    sources: dict[Name, Source] = {}
    topics: dict[Name, Topic] = {}
    folders: dict[Name, str] = {}
    values: dict[Name, str | int | RequiredValue] = {}
    settings: dict[str, Setting] = {}

    def trigger_of(self, step: str) -> Trigger:
        """The step's own trigger, else the environment's."""
        return self.triggers.get(step, self.trigger)


# ── The whole ─────────────────────────────────────────────────────────────────────────────────────────


class Target(Model):
    """The part of a target in databricks.yml that is read: its mode."""

    name: str
    mode: Literal["development", "production"] | None = None


class Bundle(Model):
    """Everything that the files of one bundle say, for one environment."""

    root: str
    name: str
    pipelines: dict[str, Pipeline]
    environment: Environment
    targets: dict[str, Target] = {}
