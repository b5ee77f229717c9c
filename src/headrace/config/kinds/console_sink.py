"""The console as a sink."""

from __future__ import annotations

from typing import ClassVar

from headrace.config.kinds.sink_model import SinkModel


class ConsoleSink(SinkModel):
    """The console: prints each batch."""

    kind_name: ClassVar[str] = "console"
    label: ClassVar[str] = "a console"
    plural: ClassVar[str] = "the console"
    implementation: ClassVar[str] = "headrace.io.sinks.console_sink"

    console: bool | None = None
