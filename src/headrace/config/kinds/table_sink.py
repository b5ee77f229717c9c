"""Delta tables as a sink."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from headrace.config.kinds.sink_model import PARTITION_BY, SinkModel
from headrace.config.value_types import Name, TupleOf


class TableSink(SinkModel):
    """A Delta table, and how batches are written to it."""

    kind_name: ClassVar[str] = "table"
    label: ClassVar[str] = "a table"
    plural: ClassVar[str] = "tables"
    implementation: ClassVar[str] = "headrace.io.sinks.table_sink"

    table: Name | None = Field(default=None, description="The name of the table.", examples=["bronze_orders"])
    mode: Literal["append", "replace", "upsert"] = Field(
        default="append",
        description="`append` adds the rows of each batch, `replace` replaces the table's rows with those of the "
        "batch, `upsert` updates the rows with the same `keys` and adds the others.",
        examples=["upsert"],
    )
    keys: TupleOf[str] = Field(
        default=(), description="For an upsert: the columns that identify a row.", examples=[["customer_id"]]
    )
    sequence: str | None = Field(
        default=None,
        description="For an upsert: the column whose greater value marks the newer row.",
        examples=["updated_at"],
    )
    partition_by: TupleOf[str] = PARTITION_BY
    cluster_by: TupleOf[str] = Field(
        default=(), description="The columns of Delta's liquid clustering.", examples=[["country"]]
    )
    evolve: Literal["add"] | None = Field(
        default=None,
        description="`add`: add the columns that the rows have and the existing table lacks.",
        examples=["add"],
    )
