"""What all kinds of sinks have in common."""

from __future__ import annotations

from typing import ClassVar

from headrace.config.value_types import Model


class SinkModel(Model):
    """The keys of one kind of sink. The key with the kind's own name, such as `table`, selects the kind.

    `implementation` is a module with a function `open_stream`, which returns Spark's writer for a stream. If the batch
    writer can write the sink, the module also has a function `write_batch`.
    """

    kind_name: ClassVar[str]
    label: ClassVar[str]  # for messages: "a topic"
    plural: ClassVar[str]  # for messages: "topics"
    implementation: ClassVar[str]
    native_outputs: ClassVar[tuple[str, ...]] = ()  # output modes, if Spark writes the sink without the batch writer
    is_located: ClassVar[bool] = False  # the environment gives a location for each name, under a key like `topics`
