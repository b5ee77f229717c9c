"""The registry of sink kinds, the models in the modules `*_sink`, and the model of an entry of `writes`."""

from __future__ import annotations

from pydantic import Field

from headrace.config.kinds.discovery import find_kinds
from headrace.config.kinds.sink_model import SinkModel
from headrace.config.kinds.table_sink import TableSink
from headrace.config.value_types import Setting

_OTHERS = [kind for kind in find_kinds(SinkModel, "_sink") if kind is not TableSink]


class Sink(TableSink, *_OTHERS):  # type: ignore[misc]  # mypy cannot know these base classes
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


_KINDS: tuple[type[SinkModel], ...] = (TableSink, *_OTHERS)
SINKS = {kind.kind_name: kind for kind in _KINDS}
