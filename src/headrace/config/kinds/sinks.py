"""The registry of sink kinds, and the model of an entry of `writes`."""

from __future__ import annotations

from pydantic import Field

from headrace.config.kinds.console_sink import ConsoleSink
from headrace.config.kinds.folder_sink import FolderSink
from headrace.config.kinds.kafka_sink import KafkaSink
from headrace.config.kinds.memory_sink import MemorySink
from headrace.config.kinds.sink_model import SinkModel
from headrace.config.kinds.table_sink import TableSink
from headrace.config.value_types import Setting


class Sink(TableSink, KafkaSink, FolderSink, ConsoleSink, MemorySink):
    """An entry of `writes`: the keys of all kinds of sinks, and options of Spark's writer.

    A valid entry sets only the keys of one kind.
    """

    options: dict[str, Setting] = Field(
        default={}, description="Options of Spark's writer.", examples=[{"compression": "gzip"}]
    )

    @property
    def kinds(self) -> list[str]:
        """The names of the kinds that the entry selects; a valid entry selects one."""
        return [name for name in SINKS if getattr(self, name)]

    @property
    def kind(self) -> str:
        """The name of the sink's kind."""
        return self.kinds[0]


SINKS: dict[str, type[SinkModel]] = {base.kind_name: base for base in Sink.__bases__ if issubclass(base, SinkModel)}
