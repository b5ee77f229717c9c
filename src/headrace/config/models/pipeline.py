"""The models of a pipeline file, which is the same in every environment."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from headrace.config.kinds.expectation import Rule
from headrace.config.kinds.sinks import Sink
from headrace.config.value_types import IMPORT_PATH, Duration, ImportPath, Model, Name, Setting, TupleOf

Layer = Literal["bronze", "silver", "gold"]


class Watermark(Model):
    """The event-time column, and how late a row may be."""

    column: str
    delay: Duration


class Read(Model):
    """One input of a step: a source or a table."""

    source: Name | None = None
    table: Name | None = None
    schema_: str | None = Field(default=None, alias="schema")
    infer: bool = False  # Spark infers the schema of the source's files
    static: bool = False  # the whole table is read again for each batch, not as a stream
    changes: bool = False  # the stream consists of the table's changes: inserts, updates and deletes
    watermark: Watermark | None = None
    max_future: Duration = "5 minutes"  # a row is bad if its event time is further in the future
    expect: TupleOf[Rule] = ()
    options: dict[str, Setting] = {}

    @property
    def schema_path(self) -> str | None:
        """The import path of the schema; None if there is no schema, or if it is a list of columns and types."""
        return self.schema_ if self.schema_ and IMPORT_PATH.match(self.schema_) else None


class Step(Model):
    """One streaming query: its inputs, an optional transform and its sinks."""

    name: str
    layer: Layer
    reads: dict[Name, Read]
    transform: ImportPath | None = None
    with_: dict[str, Any] = Field(default={}, alias="with")  # the transform's settings
    row_wise: bool = False  # declares that the transform handles each row on its own
    deduplicates: bool = False  # declares that the transform only removes rows with duplicate `keys` (under `with`)
    expect: TupleOf[Rule] = ()
    writes: TupleOf[Sink]
    output: Literal["append", "update", "complete"] = "append"  # Spark's output mode
    settings: dict[str, Setting] = {}  # of Spark, while this step runs
    accept: TupleOf[str] = ()  # digests of old signatures with whose checkpoints the step starts all the same
    on_failure: Literal["stop", "continue"] = "stop"  # whether a failure of the step also stops the other steps

    @property
    def tables_written(self) -> tuple[str, ...]:
        """The names of the tables that the step writes."""
        return tuple(sink.table for sink in self.writes if sink.table)

    @property
    def transforms_batches(self) -> bool:
        """Whether the transform runs on the good rows of each batch, instead of on the stream."""
        return self.row_wise and self.transform is not None

    @property
    def copies_changes(self) -> bool:
        """Whether the step keeps a copy of a table: it reads a table's changes and upserts them into another table."""
        reads_changes = any(read.changes for read in self.reads.values())
        return reads_changes and self.output == "append" and any(sink.mode == "upsert" for sink in self.writes)

    def rewrites(self, sink: Sink) -> bool:
        """Return whether the step changes existing rows of the sink's table, rather than only appending rows."""
        return sink.mode != "append" or self.output == "complete"


class Pipeline(Model):
    """The steps of one file in conf/pipelines."""

    name: str
    steps: dict[Name, Step]
