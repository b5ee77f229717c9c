"""What all kinds of sinks have in common."""

from __future__ import annotations

from typing import ClassVar

from headrace.config.value_types import Model


class SinkModel(Model):
    """The keys of one kind of sink; the one that is called like the kind selects it.

    The implementation is a module with a function `open_stream`, and `write_batch` unless it cannot write batches.
    """

    kind_name: ClassVar[str]
    label: ClassVar[str]  # for messages: "a topic"
    plural: ClassVar[str]
    implementation: ClassVar[str]
    native_outputs: ClassVar[tuple[str, ...]] = ()  # output modes of a sink that only Spark itself can write
    is_located: ClassVar[bool] = False  # the environment gives the location of each name, as in `topics`
