"""What all kinds of sinks have in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.value_types import Model

# The key `partition_by` of tables and folders.
PARTITION_BY = Field(
    default=(), description="The columns by whose values rows are divided into partitions.", examples=[["country"]]
)


class SinkModel(Model):
    """The keys of one kind of sink. The key with the kind's own name, such as `table`, selects the kind.

    `implementation` is a module with a function `open_stream`, which returns Spark's writer for a stream. If
    `native_outputs` is empty, the module also has a function `write_batch`, which the batch writer calls.
    """

    kind_name: ClassVar[str]
    label: ClassVar[str]  # for messages: "a topic"
    plural: ClassVar[str]  # for messages: "topics"
    implementation: ClassVar[str]
    # The supported output modes, if only Spark itself can write the sink; empty if the batch writer can write it too.
    native_outputs: ClassVar[tuple[str, ...]] = ()
    # Whether the environment gives a location for each name of a sink, under a key like `topics`.
    is_located: ClassVar[bool] = False
