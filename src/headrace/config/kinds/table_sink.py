"""Delta tables as a sink."""

from __future__ import annotations

from typing import ClassVar, Literal

from headrace.config.kinds.sink_model import SinkModel
from headrace.config.value_types import Name, TupleOf


class TableSink(SinkModel):
    """A Delta table, and how batches are written to it."""

    kind_name: ClassVar[str] = "table"
    label: ClassVar[str] = "a table"
    plural: ClassVar[str] = "tables"
    implementation: ClassVar[str] = "headrace.io.sinks.table_sink"

    table: Name | None = None
    mode: Literal["append", "replace", "upsert"] = "append"
    keys: TupleOf[str] = ()  # for upserts: the columns that identify a row
    sequence: str | None = None  # for upserts: the column whose greater value marks the newer row
    partition_by: TupleOf[str] = ()
    cluster_by: TupleOf[str] = ()
    evolve: Literal["add"] | None = None  # "add": add columns that the rows have and the existing table lacks
