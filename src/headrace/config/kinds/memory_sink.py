"""Memory as a sink."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.kinds.sink_model import SinkModel
from headrace.config.value_types import Name


class MemorySink(SinkModel):
    """Rows in the driver's memory, in a temporary view with the given name."""

    kind_name: ClassVar[str] = "memory"
    label: ClassVar[str] = "memory"
    plural: ClassVar[str] = "memory"
    implementation: ClassVar[str] = "headrace.io.sinks.memory_sink"
    native_outputs: ClassVar[tuple[str, ...]] = ("append", "complete")

    memory: Name | None = Field(default=None, description="The name of the temporary view.", examples=["latest"])
