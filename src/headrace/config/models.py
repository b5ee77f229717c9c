"""The configuration as frozen values: what a bundle's YAML files may say, and nothing else.

Names, line numbers and messages are the loader's; these classes only say which keys and types there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    StringConstraints,
    Tag,
)

from headrace.config.jobs import Job, Target
from headrace.config.locate import Lines

T = TypeVar("T")
UNITS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
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
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
ImportPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Memory = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*[mg]$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
Setting = str | int | float | bool
Many = Annotated[tuple[T, ...], Strict(False)]  # YAML has lists, frozen values have tuples
Layer = Literal["bronze", "silver", "gold"]


class Model(BaseModel):
    """Frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


# ── Pipeline files ────────────────────────────────────────────────────────────────────────────────────


class Rule(Model):
    """One entry of `expect`: exactly one of the five tests, and what to do with a row that fails it."""

    not_null: Many[str] | None = None
    between: dict[str, Annotated[tuple[Any, Any], Strict(False)]] | None = None
    one_of: dict[str, Many[Any]] | None = None
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
    expect: Many[Rule] = ()
    options: dict[str, Setting] = {}

    @property
    def schema_path(self) -> str | None:
        """The schema's import path; None when it is written as columns and types."""
        return self.schema_ if self.schema_ and IMPORT_PATH.match(self.schema_) else None


class Sink(Model):
    """One output of a step: exactly one of table, topic, folder, console, memory."""

    table: Name | None = None
    topic: Name | None = None
    folder: Name | None = None
    console: bool | None = None
    memory: Name | None = None
    mode: Literal["append", "replace", "upsert", "history"] = "append"
    keys: Many[str] = ()
    sequence: str | None = None
    partition_by: Many[str] = ()
    cluster_by: Many[str] = ()
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
    expect: Many[Rule] = ()
    writes: Many[Sink]
    output: Literal["append", "update", "complete"] = "append"
    settings: dict[str, Setting] = {}
    version: int = 1
    on_failure: Literal["stop", "continue"] = "stop"

    @property
    def tables_written(self) -> tuple[str, ...]:
        """The names of the tables among the writes."""
        return tuple(sink.table for sink in self.writes if sink.table)

    def rewrites(self, sink: Sink) -> bool:
        """Whether rows that stand in the sink's table are changed, so that it does not only grow."""
        return sink.mode != "append" or self.output == "complete"


class Pipeline(Model):
    """One file in conf/pipelines."""

    name: str
    steps: dict[Name, Step]


# ── Environment files ─────────────────────────────────────────────────────────────────────────────────


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


TriggerWord = Literal["available_now", "once", "default"]
Trigger = Annotated[Annotated[TriggerWord, Tag("word")] | Annotated[Every, Tag("keys")], Discriminator(_written_as)]


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
    topics: Many[str] = ()
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
    sources: dict[Name, Source] = {}
    topics: dict[Name, Topic] = {}
    folders: dict[Name, str] = {}
    values: dict[Name, Value] = {}
    settings: dict[str, Setting] = {}

    def trigger_of(self, step: str) -> Trigger:
        """The step's own trigger, else the environment's."""
        return self.triggers.get(step, self.trigger)


# ── The whole ─────────────────────────────────────────────────────────────────────────────────────────


class Bundle(Model):
    """Everything that the files of one bundle say, for one environment."""

    root: str
    name: str
    pipelines: dict[str, Pipeline]
    environment: Environment
    targets: dict[str, Target] = {}
    jobs: dict[str, tuple[Job, ...]] = Field(default={}, repr=False)  # by target
    lines: dict[str, Lines] = Field(default={}, exclude=True, repr=False)

    @property
    def directory(self) -> Path:
        """Where runs keep events and logs: in the bundle; beside the checkpoints where that is a release."""
        engine = self.environment.engine
        if engine.kind == "databricks" or (engine.kind == "spark" and engine.releases):
            return Path(self.environment.checkpoints) / ".headrace"
        return Path(self.root) / ".headrace" / self.environment.name

    def where(self, pipeline: str, *path: str | int) -> str:
        """file:line of a key of a pipeline's file."""
        return self.lines_of(pipeline).where(*path)

    def lines_of(self, pipeline: str) -> Lines:
        """The lines of a pipeline's file."""
        file = f"conf/pipelines/{pipeline}.yml"
        return self.lines.get(file, Lines(file))

    def located_steps(self) -> Iterator[tuple[Lines, Step]]:
        """All steps of all pipelines, each with the lines of its file."""
        for pipeline in self.pipelines.values():
            for step in pipeline.steps.values():
                yield self.lines_of(pipeline.name), step
