"""The console as a sink."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.kinds.sink_model import SinkModel


class ConsoleSink(SinkModel):
    """The console: prints each batch."""

    kind_name: ClassVar[str] = "console"
    label: ClassVar[str] = "a console"
    plural: ClassVar[str] = "the console"
    implementation: ClassVar[str] = "headrace.io.sinks.console_sink"

    console: bool | None = Field(default=None, description="`true`: print the rows of each batch.", examples=[True])
