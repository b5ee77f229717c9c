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

    column: str = Field(description="The event-time column, of the type TIMESTAMP.", examples=["ordered_at"])
    delay: Duration = Field(
        description="How much later than newer rows a row may arrive without being dropped.", examples=["10 minutes"]
    )


class Read(Model):
    """One input of a step: a source or a table."""

    source: Name | None = Field(
        default=None, description="The source, by its name under `sources` of the environment.", examples=["orders"]
    )
    table: Name | None = Field(
        default=None,
        description="The table that another step of the bundle writes, instead of `source`.",
        examples=["customers"],
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="The schema of a source's rows: the import path of a StructType, or columns and their types.",
        examples=["shop.orders:ORDER", "order_id STRING, amount DOUBLE"],
    )
    infer: bool = Field(
        default=False,
        description="Infer the schema from the source's existing files when a run starts, instead of `schema`.",
        examples=[True],
    )
    static: bool = Field(
        default=False,
        description="Read the whole table again for each batch, instead of streaming it.",
        examples=[True],
    )
    changes: bool = Field(
        default=False,
        description="Stream the changes of the table, with the column `_change_type`, instead of its rows.",
        examples=[True],
    )
    watermark: Watermark | None = Field(
        default=None, description="The watermark, by which Spark drops late rows and old state."
    )
    max_future: Duration = Field(
        default="5 minutes",
        description="A row with a watermark is quarantined if its event time is further in the future.",
        examples=["1 hour"],
    )
    expect: TupleOf[Rule] = Field(default=(), description="Rules on the rows, which are checked before the transform.")
    options: dict[str, Setting] = Field(
        default={},
        description="Options of Spark's reader, in addition to those of the source.",
        examples=[{"startingVersion": 12}],
    )

    @property
    def schema_path(self) -> str | None:
        """The import path of the schema; None if there is no schema, or if it is a list of columns and types."""
        return self.schema_ if self.schema_ and IMPORT_PATH.match(self.schema_) else None


class Step(Model):
    """One streaming query: its inputs, an optional transform and its sinks."""

    name: str
    layer: Layer = Field(description="The degree to which the rows are refined.", examples=["bronze"])
    reads: dict[Name, Read] = Field(description="The inputs, by the names of the transform's parameters.")
    transform: ImportPath | None = Field(
        default=None,
        description="The function that transforms the rows; without it, they are written as they are read.",
        examples=["shop.orders:revenue"],
    )
    with_: dict[str, Any] = Field(
        default={}, alias="with", description="The transform's settings.", examples=[{"window": "5 minutes"}]
    )
    row_wise: bool = Field(
        default=False,
        description="Declares that the transform handles each row on its own, so that rows can be checked before it.",
        examples=[True],
    )
    deduplicates: bool = Field(
        default=False,
        description="Declares that the transform only removes rows with duplicate `keys` (a setting under `with`), "
        "so that rows can be checked before it.",
        examples=[True],
    )
    expect: TupleOf[Rule] = Field(default=(), description="Rules on the rows that the transform returns.")
    writes: TupleOf[Sink] = Field(description="The sink, or a list of sinks.")
    output: Literal["append", "update", "complete"] = Field(
        default="append", description="Spark's output mode.", examples=["complete"]
    )
    settings: dict[str, Setting] = Field(
        default={}, description="Spark settings for this step only.", examples=[{"spark.sql.shuffle.partitions": 8}]
    )
    accept: TupleOf[str] = Field(
        default=(),
        description="Digests of old query signatures: the step continues the checkpoint of a query with one of them.",
        examples=[["0c1f8a52d7e3"]],
    )
    on_failure: Literal["stop", "continue"] = Field(
        default="stop",
        description="Whether the other steps stop or continue if this step fails.",
        examples=["continue"],
    )

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
    steps: dict[Name, Step] = Field(description="The steps, by their names.")
