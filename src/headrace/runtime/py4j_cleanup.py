"""Clears away what ended queries leave behind: next to nothing, but rounds have a hundred thousand of them a day.

py4j keeps the connection over which a query's thread called Python, and a thread of Python at its end (0.10.9.9).
Spark keeps a listener that a query with state made for itself, and tells it of every event (4.2.0). A batch took twice
as long after twenty minutes: each program that RocksDB starts, to delete a directory, closes all that is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTENER = "StreamingQueryListenerBus"


class Py4jCleanup:
    """Notes what is there before the first query; what came since goes with each `clear`."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        self._ours = {one.hashCode() for one in self._listeners()}

    def clear(self) -> None:
        """Connections go at the second call after their last use: the first cannot know that it was the last."""
        from py4j.java_gateway import JavaObject

        JavaObject("GATEWAY_SERVER", self._context._gateway._gateway_client).getCallbackClient().periodicCleanup()
        for one in self._listeners():
            if one.hashCode() not in self._ours:
                self._context._jsc.sc().listenerBus().removeListener(one)

    def _listeners(self) -> list[Any]:
        """Those of sessions for their queries: a query's own session has one too, of which nobody wants to hear."""
        every = self._context._jsc.sc().listenerBus().listeners()
        return [one for one in every if one.getClass().getSimpleName() == LISTENER]
